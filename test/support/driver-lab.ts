/** A driver with its storage as a server opens them, on a project of its own; everything is taken away afterwards. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { findPaths } from "../../src/base/config/paths.ts";
import { Closers } from "../../src/base/host/closers.ts";
import { IdRanges } from "../../src/base/host/id-ranges.ts";
import { openState } from "../../src/base/open.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { DriverName } from "../../src/base/schema/sandbox.ts";
import type { Base } from "../../src/base/store/rows.ts";
import type { Backend } from "../../src/machine/backends.ts";
import type { CommandLog, ExecRequest, RawExit, RunningCommand, Walls } from "../../src/machine/drivers/drivers.ts";
import { openMachine } from "../../src/machine/open.ts";
import { projectIn } from "../../src/machine/volumes/volumes.ts";
import { CELL } from "./storage.ts";

const SILENT = { info: () => undefined, warn: () => undefined };
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const LIMITS_OF_ONE = { cpus: 1, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3, processes: 100 };
/** Files of the project that contract suites are tried on. */
export const FILES = { "a.txt": "one\ntwo\n", "src/main.js": "console.log(1);\n" };
export const USER = String(userInfo().uid);

export interface Box {
  readonly id: string;
  readonly base: Base;
  readonly walls: Walls;
  /** Where the host finds what the sandbox writes into its project. */
  readonly written: string;
}

export interface Heard {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: RawExit;
}

export async function hear(running: RunningCommand): Promise<Heard> {
  const heard = { stdout: "", stderr: "" };
  for await (const chunk of running.output) if (chunk.stream !== "gap") heard[chunk.stream] += chunk.data.toString();
  return { ...heard, exit: await running.exit };
}

export class DriverLab {
  readonly name: DriverName;
  readonly project: string;
  readonly #place: string;
  readonly #project = newId("project");
  readonly #taken: number[] = [];
  #backend: Backend | undefined;
  #ranges: IdRanges | undefined;
  #closers = new Closers(SILENT);
  #idle = false;

  private constructor(name: DriverName) {
    this.name = name;
    this.#place = realpathSync(mkdtempSync(join(tmpdir(), "viv-driver-")));
    this.project = join(this.#place, "project");
  }

  static async open(name: DriverName, files: Readonly<Record<string, string>>): Promise<DriverLab> {
    const lab = new DriverLab(name);
    for (const [file, text] of Object.entries(files)) lab.put(file, text);
    await lab.#start();
    return lab;
  }

  get backend(): Backend {
    if (this.#backend === undefined) throw new Error(`this machine does not have the driver ${this.name}`);
    return this.#backend;
  }

  get driver(): Backend["driver"] {
    return this.backend.driver;
  }

  async #start(): Promise<void> {
    const env = { VIV_HOME: join(this.#place, "home"), VIV_CONFIG: join(this.#place, "config.json"), VIV_CELL: CELL };
    this.#closers = new Closers(SILENT);
    const fail = (why: string) => () => {
      throw new Error(why);
    };
    const state = await openState(
      { paths: findPaths(env), env, log: SILENT, onDisowned: fail("the state folder was lost") },
      this.#closers,
    );
    const options = { standIns: () => undefined, isIdle: () => this.#idle, onLost: fail("the cell host was lost") };
    const { backends } = await openMachine(state, options, this.#closers);
    this.#ranges = new IdRanges({ owner: state.owner, home: state.paths.home, isFree: () => true, shared: state.machine.uid === 0 });
    this.#backend = backends.find(this.name);
  }

  /** Another server takes over: what the first one kept in memory is gone. */
  async restart(): Promise<void> {
    await this.#closers.close();
    await this.#start();
  }

  /** Writes a file of the real project. */
  put(file: string, text: string): void {
    mkdirSync(dirname(join(this.project, file)), { recursive: true });
    writeFileSync(join(this.project, file), text);
  }

  async create(): Promise<Box> {
    const { capture, storage } = this.backend;
    const limits = { exclude: [], hidden: [], live: [], limitBytes: LIMITS.maxCapturedBytes, data: [] };
    const base = await capture.base({ project: this.#project, path: this.project, ...limits });
    const id = newId("sandbox");
    const volume = storage.disks.create(id, { base: base.id, project: this.#project }, LIMITS_OF_ONE.diskBytes);
    const walls = await this.driver.launch({
      sandbox: id,
      limits: LIMITS_OF_ONE,
      range: this.#range(),
      largeIds: { uids: [], gids: [] },
      sudo: false,
      content: { name: "box", volume: () => volume, base, readOnly: false, sealed: false, isUsedAtOnce: false, ...this.hiding },
    });
    return { id, base, walls, written: this.#writtenTo((await volume).folder) };
  }

  get hiding(): { project: string; mask: readonly string[]; expose: readonly string[]; home: string } {
    return { project: this.project, mask: [], expose: [], home: userInfo().homedir };
  }

  #writtenTo(folder: string): string {
    return this.backend.storage.capabilities.roots === "direct" ? projectIn(folder) : join(projectIn(folder), "upper");
  }

  #range(): number {
    for (let range = 0; ; range += 1) {
      if (this.#taken.includes(range) || this.#ranges?.take(range) === false) continue;
      this.#taken.push(range);
      return range;
    }
  }

  /** Finds a sandbox again, as the server does after a restart. */
  adopt({ id, walls }: Box): Promise<Walls | undefined> {
    return this.driver.adopt(id, walls.launched, LIMITS_OF_ONE);
  }

  request(line: string, more: Partial<ExecRequest> = {}): ExecRequest {
    const command = ["/bin/sh", "-c", line];
    return { id: newId("command"), command, env: { PATH }, cwd: this.project, user: USER, stdin: false, ...more };
  }

  async run({ walls }: { readonly walls: Walls }, line: string, more: Partial<ExecRequest> = {}): Promise<Heard> {
    return hear(await walls.commands.exec(this.request(line, more)));
  }

  async remove(): Promise<void> {
    await this.driver.reconcile(async () => new Set());
    this.#idle = true;
    for (const range of this.#taken) this.#ranges?.release(range);
    await this.#closers.close();
    execFileSync("rm", ["-rf", this.#place]);
  }
}

/** A sandbox that a contract suite tries commands and files on. */
export interface Tried {
  readonly lab: DriverLab;
  readonly box: Box;
}

export function textOf({ chunks }: CommandLog): string {
  return chunks.map((chunk) => (chunk.stream === "gap" ? "" : chunk.data.toString())).join("");
}

/** Writes the time into the file `beat` again and again. */
export const BEAT = "while :; do date +%s%N > beat.new; mv beat.new beat; sleep 0.02; done";

/** Whether the processes that write `beat` go on. */
export async function beats({ written }: Box): Promise<boolean> {
  const read = (): string => readFileSync(join(written, "beat"), "utf8");
  const before = read();
  await wait(300);
  return read() !== before;
}
