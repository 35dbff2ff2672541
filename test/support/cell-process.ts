/** Process 1 by itself, built with sanitizers, in throw-away namespaces: what the tests of native/ speak to. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CellClient, type CellExec } from "../../src/machine/drivers/native/cell-client.ts";
import type { RawExit } from "../../src/machine/drivers/drivers.ts";
import { sanitizedProgram } from "./native-programs.ts";

let testinit: string | undefined;

/** What process 1 is made of, with a main of its own. */
function processOne(): string {
  return (testinit ??= sanitizedProgram("testinit", "tests/testinit.c $(find init shared -name '*.c')"));
}

export class CellProcess {
  readonly folder = mkdtempSync(join(tmpdir(), "viv-process1-"));
  readonly logs = join(this.folder, "logs");
  readonly run = join(this.folder, "run");
  readonly socket = join(this.folder, "socket");
  readonly client = new CellClient(this.socket);
  #child: ChildProcess | undefined;
  #first: number | undefined;
  #errors = "";
  #serial = 0;

  async start(...options: string[]): Promise<this> {
    return this.#start([processOne(), this.socket, this.logs, this.run, ...options]);
  }

  /** With a log folder that holds this little; seen from here at `logsInside`. */
  async startWithSmallLogs(size: string): Promise<this> {
    const script = `mount -t tmpfs -o size=${size} logs "$2" && exec "$0" "$@"`;
    return this.#start(["unshare", "-m", "sh", "-c", script, processOne(), this.socket, this.logs, this.run]);
  }

  get logsInside(): string {
    return `/proc/${this.firstPid}/root${this.logs}`;
  }

  async #start([program = "", ...options]: readonly string[]): Promise<this> {
    mkdirSync(this.logs);
    mkdirSync(this.run);
    const child = spawn(program, options, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ASAN_OPTIONS: "detect_leaks=0:abort_on_error=1" },
    });
    this.#child = child;
    child.stderr.on("data", (data: Buffer) => (this.#errors += data.toString()));
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    this.#first = Number(line.toString());
    return this;
  }

  /** What the sanitizers said; empty when all is well. */
  get complaints(): string {
    return this.#errors;
  }

  get ended(): Promise<unknown> {
    return this.#child === undefined || this.#child.exitCode !== null ? Promise.resolve() : once(this.#child, "exit");
  }

  get running(): boolean {
    return this.#child?.exitCode === null;
  }

  /** Process 1 as the host knows it. */
  get firstPid(): number {
    if (this.#first === undefined) throw new Error("not started");
    return this.#first;
  }

  request(command: readonly string[], changes: Partial<CellExec> = {}): CellExec {
    const env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
    return { id: `c${++this.#serial}`, command, env, cwd: "/", user: "root", stdin: false, logBytes: 1 << 20, ...changes };
  }

  /** Runs a command to its end. */
  async collect(command: readonly string[], changes: Partial<CellExec> = {}): Promise<{ stdout: string; stderr: string; exit: RawExit }> {
    const running = await this.client.exec(this.request(command, changes));
    const parts: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    for await (const chunk of running.output) {
      if (chunk.stream !== "gap") parts[chunk.stream].push(chunk.data);
    }
    const exit = await running.exit;
    return { stdout: Buffer.concat(parts.stdout).toString(), stderr: Buffer.concat(parts.stderr).toString(), exit };
  }

  async remove(): Promise<void> {
    const ended = this.ended;
    if (this.running) await this.client.stop(0);
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
