/** A real server as users run it, in a process and a state folder of its own, reached through its socket. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { startServer } from "../src/interfaces/cli/start.ts";
import { Client } from "../src/interfaces/client/client.ts";
import { findPaths, type Paths } from "../src/base/config/paths.ts";
import type { InputOf, OperationName, OutputOf } from "../src/base/schema/contracts.ts";
import { workedMs } from "./processes.ts";
import { makeProject } from "./projects.ts";
import { publish } from "./published.ts";
import { timed } from "./measure.ts";

const WARM_UP_CREATES = 5;
const TRUE = ["/bin/true"];
const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const INTERRUPTED = 130;
/** A call that hangs breaks its row, not the run. */
const CALL_MS = 120_000;

export class BenchServer {
  /** Temporary folder around everything. */
  readonly place: string;
  /** A project of 50 files. */
  readonly project: string;
  readonly paths: Paths;
  readonly #client: Client;
  #named = 0;
  #pid = 0;
  #storage = "plain";

  private constructor(place: string) {
    this.place = place;
    this.project = join(place, "small");
    this.paths = findPaths(this.env);
    this.#client = new Client({ socket: this.paths.socket });
  }

  /** Starts a server, warms it, runs `work`, and leaves nothing on the machine. One that is published is started by its `viv`. */
  static async with<T>(
    work: (server: BenchServer) => Promise<T>,
    config: unknown = {},
    options: { readonly isPublished?: boolean } = {},
  ): Promise<T> {
    const server = new BenchServer(mkdtempSync(join(tmpdir(), "viv-bench-")));
    writeFileSync(server.paths.config, JSON.stringify(config));
    const interrupted = (): void => void server.#remove().finally(() => process.exit(INTERRUPTED));
    for (const signal of SIGNALS) process.once(signal, interrupted);
    try {
      await server.#start(options.isPublished === true);
      return await work(server);
    } finally {
      for (const signal of SIGNALS) process.off(signal, interrupted);
      await server.#remove();
    }
  }

  async #start(isPublished: boolean): Promise<void> {
    makeProject(this.project, 50);
    if (isPublished)
      execFileSync(await publish(join(this.place, "package")), ["ls"], { env: { ...process.env, ...this.env }, stdio: "ignore" });
    else await startServer(this.paths, { env: process.env, report: (line) => process.stderr.write(`${line}\n`) });
    const { pid, storage, driver } = await this.call("status", {});
    if (driver !== "native") throw new Error("this machine can't put walls around a sandbox, so there is nothing to measure");
    this.#pid = pid;
    this.#storage = storage;
    for (let index = 0; index < WARM_UP_CREATES; index += 1) await this.createAndRemove();
  }

  async #remove(): Promise<void> {
    try {
      if (this.#pid !== 0) await this.#stop();
    } finally {
      this.#client.close();
    }
    rmSync(this.place, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async #stop(): Promise<void> {
    await this.call("prune", { all: true });
    await this.call("shutdown", {});
    // Its storage is unmounted when it has ended, and not before.
    const deadline = performance.now() + CALL_MS;
    while (isAlive(this.#pid)) {
      if (performance.now() > deadline) throw new Error(`the server ${this.#pid} does not end`);
      await delay(10);
    }
  }

  /** kill -9, and another server on the same state. */
  async killAndRestart(): Promise<void> {
    process.kill(this.#pid, "SIGKILL");
    while (isAlive(this.#pid)) await delay(10);
    await startServer(this.paths, { env: process.env, report: (line) => process.stderr.write(`${line}\n`) });
    this.#pid = (await this.call("status", {})).pid;
  }

  call<Name extends OperationName>(name: Name, input: InputOf<Name>): Promise<OutputOf<Name>> {
    return this.#client.call(name, input, AbortSignal.timeout(CALL_MS));
  }

  /** What a `viv` of this server needs in its environment. */
  get env(): Readonly<Record<string, string>> {
    return { VIV_HOME: join(this.place, "state"), VIV_CONFIG: join(this.place, "config.json") };
  }

  /** Runs an experiment to its end, which an event tells. */
  async experiment(input: InputOf<"startExperiment">): Promise<OutputOf<"inspectExperiment">> {
    const { newest } = await this.call("listEvents", { limit: 1 });
    const signal = AbortSignal.timeout(CALL_MS);
    const { id } = await this.call("startExperiment", input);
    for await (const { type, data } of this.#client.events(newest, { signal }))
      if (type === "experiment.ended" && data["experiment"] === id) return this.call("inspectExperiment", { experiment: id });
    throw new Error(`the experiment ${id} did not end`);
  }

  /** Events from now on. */
  async events(signal: AbortSignal): Promise<ReturnType<Client["events"]>> {
    const { newest } = await this.call("listEvents", { limit: 1 });
    return this.#client.events(newest, { signal });
  }

  /** Events of a run from its first one on, then live ones, until it has ended; each listener has a connection of its own. */
  runEvents(run: string): ReturnType<Client["runEvents"]> {
    return this.#client.runEvents(run, 0, AbortSignal.timeout(CALL_MS));
  }

  get pid(): number {
    return this.#pid;
  }

  /** Milliseconds that processors have worked for it so far. */
  readonly worked = (): number => workedMs(this.#pid);

  get storage(): string {
    return this.#storage;
  }

  async create(project = this.project): Promise<OutputOf<"createSandbox">> {
    return this.call("createSandbox", { project });
  }

  /**
   * Milliseconds of one call that creates a sandbox and runs /bin/true in it; its removal is not timed. One with a name
   * of its own is never a spare that the server has made ahead.
   */
  async createAndRemove(project = this.project, options: { ahead?: boolean } = {}): Promise<number> {
    const name = options.ahead === false ? { name: `bench-${(this.#named += 1)}` } : {};
    let id = "";
    const ms = await timed(async () => {
      const made = await this.call("createSandbox", { project, ...name, run: { command: TRUE } });
      id = made.id;
      if (made.result?.end?.exitCode !== 0) throw new Error(`/bin/true failed inside: ${JSON.stringify(made.result)}`);
    });
    await this.remove(id);
    return ms;
  }

  async remove(sandbox: string): Promise<void> {
    await this.call("removeSandbox", { sandbox });
  }

  /** Milliseconds of one fork of a sandbox as it is now; its removal is not timed. */
  async forkAndRemove(sandbox: string): Promise<number> {
    let made: readonly { id: string }[] = [];
    const ms = await timed(async () => void (made = (await this.call("forkSandbox", { sandbox })).sandboxes));
    for (const { id } of made) await this.remove(id);
    return ms;
  }

  /** What the desktop shows, as PNG. */
  async screenshot(sandbox: string): Promise<Buffer> {
    return buffer(await this.#client.screenshot(sandbox));
  }

  /** Runs a shell line inside; a failure is an error. */
  async sh(sandbox: string, line: string): Promise<string> {
    const result = await this.call("runCommand", { sandbox, command: ["/bin/sh", "-c", line] });
    if (result.end?.exitCode !== 0) throw new Error(`failed inside: ${line}: ${result.stderr}`);
    return result.stdout;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}
