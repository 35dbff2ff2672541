/** Starts the server when none runs: once, however many command lines want it at the same moment. */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isListening } from "../client/listening.ts";
import { SERVER } from "../../base/config/machine.ts";
import { preparePaths, type Environment, type Paths } from "../../base/config/paths.ts";
import { ERRORS, isErrorCode, VivError } from "../../base/schema/errors.ts";

/** A start takes a third of a second; where the disk is busy, or a server with many sandboxes was killed, much longer. */
const START_TIMEOUT_MS = 60_000;
/** From then on the caller is told what it waits for. */
const SLOW_START_MS = 5_000;
/** Another command line then takes the lock away: a second server that it starts ends by itself while the first one has the folder. */
const LOCK_MS = 10_000;
const FIRST_RETRY_MS = 4;
const LONGEST_RETRY_MS = 100;
const LOG_LINES = 8;
/** A server that ends because another one has the folder has done no harm: that one is about to listen, or about to end. */
const ANOTHER_RUNS = `exit code ${ERRORS.server_running.exit}`;
/** What a server needs of the caller's environment. The rest stays out of a process that lives for days. */
const PASSED_ON = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|TMPDIR|DBUS_SESSION_BUS_ADDRESS|LC_\w+|XDG_\w+|VIV_\w+|NODE_\w+)$/;

export interface StartOptions {
  /** More words for the server's command line. */
  readonly flags?: readonly string[];
  readonly env: Environment;
  /** Gets a line when the start takes long, and the last lines of the server's log when it could not start. */
  readonly report: (line: string) => void;
}

export async function startServer(paths: Paths, options: StartOptions): Promise<void> {
  prepare(paths);
  const logged = logSize(paths.log);
  const failed = (message: string): VivError => failure(paths, message, logged, options.report);
  const began = performance.now();
  let toldAfter = SLOW_START_MS;
  let exited: Promise<string> | undefined;
  let mine = false;
  try {
    for (let wait = FIRST_RETRY_MS; performance.now() - began < START_TIMEOUT_MS; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      if (await isListening(paths.socket)) return;
      if (performance.now() - began > toldAfter) {
        options.report(`The server is still starting: the disk is busy, or there is much to recover. ${paths.log} says more.`);
        toldAfter = START_TIMEOUT_MS;
      }
      mine ||= takeLock(paths.startLock);
      if (mine && exited === undefined) {
        // The process that held the lock before may have started the server between the look and the lock.
        if (await isListening(paths.socket)) return;
        exited = launch(paths, options);
      }
      const how = await Promise.race([delay(wait), exited ?? new Promise<never>(() => undefined)]);
      if (how === undefined) continue;
      if (how !== ANOTHER_RUNS && !(await isListening(paths.socket))) throw failed(`The server ended at once (${how}).`);
      exited = undefined;
    }
    throw failed(`The server did not answer within ${START_TIMEOUT_MS / 1000} seconds.`);
  } finally {
    if (mine) rmSync(paths.startLock, { force: true });
  }
}

function prepare(paths: Paths): void {
  try {
    preparePaths(paths);
  } catch (error) {
    if (error instanceof VivError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new VivError("server_unreachable", `The state folder ${paths.home} can't be made: ${message}`, {
      cause: error,
      remedy: "Choose a folder you can write to with VIV_HOME.",
    });
  }
}

/** Runs the server apart from this process: its own session, no terminal, no pipe of ours. Resolves when it ends. */
function launch(paths: Paths, options: StartOptions): Promise<string> {
  const log = openSync(paths.log, "a", 0o600);
  const [program, ...args] = inSystemdScope(
    [process.execPath, ...serverCommand(), ...(options.flags ?? [])],
    options.env,
    process.getuid?.() ?? 0,
  );
  const child = spawn(program, args, {
    cwd: "/",
    detached: true,
    stdio: ["ignore", log, log],
    env: serverEnvironment(paths, options.env),
  });
  closeSync(log);
  child.unref();
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code ?? "unknown"}`));
    child.once("error", (error) => resolve(error.message));
  });
}

const SCOPE = "systemd-run --user --scope --quiet --collect -p Delegate=yes";

/**
 * An ordinary user may not make cgroups, but the user's systemd hands out a scope in which the server may. Where that
 * does not work the server runs without, and limits are watched.
 */
export function inSystemdScope(command: readonly [string, ...string[]], env: Environment, uid: number): readonly [string, ...string[]] {
  const runtime = env["XDG_RUNTIME_DIR"];
  if (uid === 0 || !runtime || !existsSync(join(runtime, "systemd/private"))) return command;
  return ["/bin/sh", "-c", `if ${SCOPE} true 2>/dev/null; then exec ${SCOPE} -- "$@"; fi; exec "$@"`, "sh", ...command];
}

/**
 * What Node runs as the server. It idles most of the time, so a small young generation, and a heap that is collected before it has grown
 * by more than a seventh, cost it little and save a good part of its memory. So does machine code of functions that no one has called
 * for a while, and the compiler for functions that are neither rare nor hot: hot ones still get the best code.
 */
const ENGINE = ["--max-semi-space-size=2", "--heap-growing-percent=15", "--flush-baseline-code", "--no-maglev", "--expose-gc"];

export function serverCommand(): string[] {
  return [...ENGINE, SERVER];
}

/** The server must find the same folders as this process did, wherever it runs. */
export function serverEnvironment(paths: Paths, env: Environment): NodeJS.ProcessEnv {
  const passed = Object.entries(env).filter(([name]) => PASSED_ON.test(name));
  const compiled = getCompileCacheDir();
  return {
    ...Object.fromEntries(passed),
    // The folder that this process uses has one subfolder for each version of Node.
    ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: dirname(compiled) }),
    // Half of the threads look up names: those of a few sandboxes that wait for nothing must not be all of them.
    UV_THREADPOOL_SIZE: "32",
    // Else the C library keeps free memory of its own for every few of them: 6 MiB that nothing uses.
    MALLOC_ARENA_MAX: "1",
    // Larger blocks go back to the system when they are free. That is the C library's first choice; left alone, it lets one large
    // block raise the size, and those of the start then leave holes.
    MALLOC_MMAP_THRESHOLD_: "131072",
    VIV_HOME: paths.home,
    VIV_CONFIG: paths.config,
  };
}

function takeLock(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  if (isStale(lock)) discard(lock);
  return false;
}

function isStale(lock: string): boolean {
  try {
    if (Date.now() - statSync(lock).mtimeMs > LOCK_MS) return true;
    const holder = Number(readFileSync(lock, "utf8"));
    // Empty for the moment between creating and writing it.
    if (holder === 0) return false;
    process.kill(holder, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** If several processes see a stale lock, one renames it; the others find it gone. */
function discard(lock: string): void {
  const aside = `${lock}.${process.pid}`;
  try {
    renameSync(lock, aside);
    rmSync(aside, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function logSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** What the server itself gave as the reason, or else the end of its log. */
function failure(paths: Paths, message: string, logged: number, report: (line: string) => void): VivError {
  const lines = readFileSync(paths.log)
    .subarray(logged)
    .toString("utf8")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const reason = lines.map(loggedError).findLast((found) => found !== undefined);
  if (reason !== undefined) return reason;
  for (const line of lines.slice(-LOG_LINES)) report(line);
  return new VivError("server_unreachable", message, { remedy: `Read ${paths.log}, or run \`viv up --foreground\` to see it start.` });
}

/** The error in a line of the server's log. */
function loggedError(line: string): VivError | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const { code, message, remedy }: Readonly<Record<string, unknown>> = JSON.parse(line);
    if (typeof code !== "string" || !isErrorCode(code)) return undefined;
    return new VivError(code, String(message), typeof remedy === "string" ? { remedy } : {});
  } catch (error) {
    // A server that was killed leaves half a line.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
