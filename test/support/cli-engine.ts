/** An engine that answers from a script and runs commands on this machine, to try the API's and the command line's own work. */
import { spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { connect } from "node:net";
import { constants } from "node:os";
import type { Engine, Handlers, Streams } from "../../src/interfaces/operations/operations.ts";
import type { Command, CommandEnd } from "../../src/base/schema/command.ts";
import type { SandboxDetail } from "../../src/base/schema/sandbox.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { newId } from "../../src/base/schema/ids.ts";

type CommandStream = Awaited<ReturnType<Streams["exec"]>>;

export function sandbox(name: string, project = "/tmp"): SandboxDetail {
  return {
    id: newId("sandbox"),
    name,
    state: "running",
    outcome: null,
    reason: null,
    driver: "native",
    walled: true,
    project,
    start: null,
    readOnly: false,
    parent: null,
    limits: { cpus: 2, memoryBytes: 4 * 1024 ** 3, diskBytes: 10 * 1024 ** 3, processes: 4096 },
    limitsHeld: "hard",
    storage: "btrfs",
    createdAt: new Date(Date.now() - 90_000).toISOString(),
    endedAt: null,
    expiresAt: new Date(Date.now() + 3_500_000).toISOString(),
    idleMs: 3_600_000,
    uses: [],
    labels: {},
    autonomy: { level: null, yolo: null, role: "worker" },
    baseTakenAt: new Date(Date.now() - 91_000).toISOString(),
    capture: {
      files: 120,
      bytes: 1_500_000,
      changed: 3,
      removed: 0,
      live: [{ path: `${project}/node_modules`, reason: "ignored", entries: 9000, bytes: 8e7 }],
      readOnly: [],
      torn: [],
      notes: [],
    },
    limitsSeen: ["memory"],
    environmentLeftOut: ["GITHUB_TOKEN"],
    masked: ["/root/.ssh"],
    notes: [],
    untrusted: [],
    use: { memoryBytes: 12_000_000, cpuMs: 512, processes: 4, diskBytes: 40_000 },
    processId: 4242,
  };
}

function endOf(code: number | null, signal: NodeJS.Signals | null, started: number): CommandEnd {
  return {
    cause: signal === null ? "exit" : "signal",
    exitCode: code ?? 128 + constants.signals[signal ?? "SIGTERM"],
    signal,
    message: signal === null ? null : `The command was ended by ${signal}.`,
    wallMs: Date.now() - started,
    cpuMs: 1,
    outputBytes: 0,
    droppedBytes: 0,
  };
}

/** A command of this machine as a stream. */
export async function hostCommand(
  box: SandboxDetail,
  words: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; terminal?: object } = {},
): Promise<CommandStream> {
  const started = Date.now();
  // util-linux's script gives a command a terminal.
  const [program = "", ...rest] =
    options.terminal === undefined ? words : ["script", "-qfec", words.map((word) => `'${word}'`).join(" "), "/dev/null"];
  const child = spawn(program, rest, { cwd: options.cwd ?? box.project, env: { PATH: "/usr/bin:/bin", ...options.env }, detached: true });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error: NodeJS.ErrnoException) =>
      reject(new VivError(error.code === "ENOENT" ? "command_not_found" : "command_not_runnable", `${words[0]} can't be run.`)),
    );
  });
  const command: Command = {
    id: newId("command"),
    sandbox: box.id,
    command: [...words],
    user: "1000",
    cwd: options.cwd ?? box.project,
    terminal: options.terminal !== undefined,
    pid: child.pid ?? 0,
    startedAt: new Date(started).toISOString(),
    running: true,
    end: null,
  };
  const end = new Promise<CommandEnd>((resolve) => child.once("close", (code, signal) => resolve(endOf(code, signal, started))));
  child.stdin.on("error", () => child.stdin.destroy());
  const chunks: { stream: "stdout" | "stderr"; data: Buffer }[] = [];
  let wake = (): void => undefined;
  let open = 2;
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].on("data", (data: Buffer) => {
      chunks.push({ stream, data });
      if (chunks.length > 16) child[stream].pause();
      wake();
    });
    child[stream].once("close", () => {
      open -= 1;
      wake();
    });
  }
  async function* output(): AsyncGenerator<{ stream: "stdout" | "stderr"; data: Buffer }, void, void> {
    for (;;) {
      const next = chunks.shift();
      if (next !== undefined) {
        if (chunks.length < 8) for (const stream of ["stdout", "stderr"] as const) child[stream].resume();
        yield next;
      } else if (open === 0) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  return {
    command,
    output: output(),
    end,
    write: (data) => new Promise<void>((resolve) => (child.stdin.write(data) ? resolve() : child.stdin.once("drain", resolve))),
    endInput: () => void child.stdin.end(),
    resize: () => undefined,
    signal: (signal) => void process.kill(-(child.pid ?? 0), `SIG${signal}` as NodeJS.Signals),
    close: () => void (child.exitCode === null && child.signalCode === null && process.kill(-(child.pid ?? 0), "SIGKILL")),
  };
}

/** What is not in the script fails loudly. */
function unscripted<Shape extends object>(parts: Partial<Shape>): Shape {
  return new Proxy(parts as Shape, {
    get: (target, name) =>
      Reflect.get(target, name) ?? (() => Promise.reject(new VivError("unsupported", `${String(name)} is not in the script.`))),
  });
}

export function scriptedEngine(operations: Partial<Handlers>, streams: Partial<Streams> = {}): Engine {
  return { operations: unscripted<Handlers>(operations), streams: unscripted<Streams>(streams) };
}

export const dialHost = (port: number): Promise<ReturnType<typeof connect>> => Promise.resolve(connect(port, "127.0.0.1"));

/** Leads a connection to a port of this machine, as the server leads one to a port inside. */
export const leadHost = async (port: number, local: Duplex): ReturnType<Streams["lead"]> => {
  const inside = await dialHost(port);
  local.pipe(inside).pipe(local);
  local.resume();
  return { ended: new Promise((resolve) => local.once("close", resolve)), cut: () => void local.destroy() };
};
