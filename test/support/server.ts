/** A real server with a state folder and a project of its own, for tests that go through the API. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { Client } from "../../src/interfaces/client/client.ts";
import { findPaths, type Paths } from "../../src/base/config/paths.ts";
import { readMounts } from "../../src/base/host/mounts.ts";
import { isListening } from "../../src/interfaces/client/listening.ts";
import { COMPILED, SERVER } from "./compiled.ts";
import type { CommandResult } from "../../src/base/schema/command.ts";
import type { InputOf, OutputOf } from "../../src/base/schema/contracts.ts";

const START_MS = 20_000;
/** A server lives for seconds here: a larger first heap takes a tenth off its processor time, most of which goes into its start. */
const HEAP = "--min-semi-space-size=16";

export interface TestServerOptions {
  /** Content of the user's own config. */
  readonly config?: unknown;
  readonly env?: Readonly<Record<string, string>>;
  /** Files of the project, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Runs the server as this user. */
  readonly uid?: number;
  readonly flags?: readonly string[];
  /** A program and its arguments that become the server: they end with what they are to run. It starts as root, whatever the user. */
  readonly through?: readonly string[];
  /** Where its folders are made; the folder for temporary files if left out. */
  readonly parent?: string;
  /** Prepares the place before the server starts for the first time. */
  readonly before?: (server: TestServer) => void;
}

export class TestServer {
  readonly place: string;
  readonly project: string;
  readonly paths: Paths;
  readonly client: Client;
  readonly #options: TestServerOptions;
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(options: TestServerOptions) {
    this.#options = options;
    this.place = mkdtempSync(join(options.parent ?? tmpdir(), "viv-test-"));
    this.project = join(this.place, "project");
    const config = join(this.place, "config.json");
    this.paths = findPaths({ ...options.env, VIV_HOME: join(this.place, "state"), VIV_CONFIG: config });
    writeFileSync(config, JSON.stringify(options.config ?? {}));
    this.#makeProject();
    this.client = new Client({ socket: this.paths.socket });
  }

  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(options);
    options.before?.(server);
    await server.up();
    return server;
  }

  #makeProject(): void {
    mkdirSync(this.project);
    for (const [name, content] of Object.entries(this.#options.files ?? { "hello.txt": "hello\n" })) {
      mkdirSync(dirname(join(this.project, name)), { recursive: true });
      writeFileSync(join(this.project, name), content);
    }
    execFileSync("git", ["init", "-q", "."], { cwd: this.project });
    const { uid } = this.#options;
    if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${uid}`, this.place]);
  }

  /** Starts it, or starts it again after it ended. Resolves when it answers. */
  async up(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const child = this.#spawn(env);
    this.#process = child;
    this.#log = "";
    child.stderr?.on("data", (chunk: Buffer) => (this.#log = (this.#log + chunk.toString()).slice(-200_000)));
    const deadline = performance.now() + START_MS;
    while (!(await isListening(this.paths.socket))) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
        await this.kill();
        throw new Error(`the server did not start: ${this.#log}`);
      }
      await delay(10);
    }
  }

  /** Another server on the same state folder: how it ends. */
  async second(): Promise<{ code: number | null; log: string }> {
    const child = this.#spawn({});
    let log = "";
    child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
    await once(child, "close");
    return { code: child.exitCode, log };
  }

  #spawn(env: Readonly<Record<string, string>>): ChildProcess {
    const { uid, flags, through } = this.#options;
    const [program = process.execPath, ...args] = [...(through ?? []), process.execPath, HEAP, SERVER, ...(flags ?? [])];
    return spawn(program, args, {
      cwd: "/",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: {
        PATH: process.env["PATH"],
        HOME: this.place,
        NODE_COMPILE_CACHE: COMPILED,
        ...(process.env["VIV_CELL"] === undefined ? {} : { VIV_CELL: process.env["VIV_CELL"] }),
        ...this.#options.env,
        VIV_HOME: this.paths.home,
        VIV_CONFIG: this.paths.config,
        ...env,
      },
      ...(uid === undefined || through !== undefined ? {} : { uid, gid: uid }),
    });
  }

  /** What the server that runs has written to its log. */
  get log(): string {
    return this.#log;
  }

  /** What the command line reads on a terminal to answer as a person. */
  approver(): string {
    return readFileSync(join(this.paths.home, "approver-token"), "utf8").trim();
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** kill -9, and waits for the end. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Asks it to stop, as `viv down` does. */
  async down(): Promise<void> {
    await this.#end("SIGTERM");
  }

  /** Makes the running server kill itself when it comes to this point, for the nth time where that is said. */
  async arm(point: string, visits = 1): Promise<void> {
    const child = this.#process;
    if (child?.connected !== true) throw new Error("no server runs whose crash points can be armed");
    const armed = once(child, "message");
    child.send({ point, visits });
    await armed;
  }

  /** Lets work run into the server's end at a point, and starts the next server. */
  async dieAt(point: string, work: () => Promise<unknown>): Promise<void> {
    await this.arm(point);
    await expect(work()).rejects.toMatchObject({ code: "server_unreachable" });
    await this.died();
    await this.up();
  }

  /** Waits until the server has ended by itself; its exit code. */
  async died(): Promise<number | null> {
    const child = this.#process;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, "exit");
    return child?.exitCode ?? null;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async create(input: Partial<InputOf<"createSandbox">> = {}): Promise<OutputOf<"createSandbox">> {
    return this.client.call("createSandbox", { project: this.project, ...input });
  }

  /** Runs a shell line inside. */
  async sh(sandbox: string, line: string, options: Partial<InputOf<"runCommand">> = {}): Promise<CommandResult> {
    return this.client.call("runCommand", { sandbox, command: ["/bin/sh", "-c", line], ...options });
  }

  /** Removes every sandbox, stops the server, and leaves nothing on the machine. */
  async remove(): Promise<void> {
    if (!(await isListening(this.paths.socket))) await this.up();
    await this.client.call("prune", { all: true });
    this.client.close();
    await this.down();
    this.clear();
  }

  /** Removes what a server that has ended left on the machine. */
  clear(): void {
    const left = readMounts().filter((mount) => mount.target.startsWith(this.place));
    if (left.length > 0) throw new Error(`still mounted: ${left.map((mount) => mount.target).join(", ")}`);
    rmSync(this.place, { recursive: true, force: true });
  }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  free.close();
  return port;
}

/** Waits for a condition; fails with its last answer. The longer it waits, the more rarely it looks: other tests need the processor. */
export async function eventually<T>(look: () => Promise<T> | T, isRight: (value: T) => boolean, withinMs = 10_000): Promise<T> {
  const began = performance.now();
  for (;;) {
    const value = await look();
    if (isRight(value)) return value;
    const waited = performance.now() - began;
    if (waited > withinMs) throw new Error(`not within ${withinMs} ms: ${JSON.stringify(value)}`);
    await delay(Math.min(Math.max(20, waited / 20), 100));
  }
}
