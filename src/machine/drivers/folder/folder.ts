/**
 * The unwalled way, for machines where no walls can be had: commands run in a copy of the project's folder, with the
 * server's own rights and no isolation at all. Never chosen by itself. Needs Node alone.
 */
import { existsSync, realpathSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { namesIn } from "../../../base/host/names-in.ts";
import { signalGroup, startOf } from "../../../base/host/process-group.ts";
import { hasIdPrefix } from "../../../base/schema/ids.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { CommandLogs, Driver, DriverCapabilities, LaunchRequest, Walls } from "../drivers.ts";
import type { Launched } from "../../../base/store/rows.ts";
import { projectIn } from "../../volumes/volumes.ts";
import { LogFolders } from "../log-folders.ts";
import { RUNNING } from "./commands.ts";
import { FolderWalls } from "./walls.ts";

const SIGKILL = 9;
/** What is enough to find a sandbox again: where its copy is, and of what. */
const PLACE = "place";

export class FolderDriver implements Driver {
  readonly name = "folder";
  readonly capabilities: DriverCapabilities = { walled: false, pause: false, limits: "none", limitsSeen: [], allUsers: false, ports: true };
  readonly logs: CommandLogs = new LogFolders((sandbox) => this.#records(sandbox), [PLACE]);
  readonly #folder: string;
  readonly #walls = new Map<string, FolderWalls>();

  constructor(options: { home: string }) {
    this.#folder = join(options.home, "folders", "commands");
  }

  async launch(request: LaunchRequest): Promise<Walls> {
    const records = this.#records(request.sandbox);
    const content = await request.content;
    const { folder } = await content.volume();
    await mkdir(records, { recursive: true, mode: 0o700 });
    const place = { root: realpathSync(projectIn(folder)), project: content.project };
    await writeFile(placeFile(records), JSON.stringify(place), { mode: 0o600 });
    return this.#open(request.sandbox, place);
  }

  /** The copy is all there is to find: commands of an earlier server lost their pipes with it, and what is left of them is ended. */
  async adopt(sandbox: string, _launched: Launched): Promise<Walls | undefined> {
    const place = await this.#place(sandbox);
    if (place === undefined || !existsSync(place.root)) return undefined;
    await this.#endLeftovers(sandbox);
    return this.#open(sandbox, place);
  }

  #open(sandbox: string, place: { root: string; project: string }): Walls {
    const walls = new FolderWalls({ ...place, records: this.#records(sandbox) });
    this.#walls.set(sandbox, walls);
    return walls;
  }

  async #place(sandbox: string): Promise<{ root: string; project: string } | undefined> {
    const found = await readJson(placeFile(this.#records(sandbox)));
    return typeof found["root"] === "string" && typeof found["project"] === "string"
      ? { root: found["root"], project: found["project"] }
      : undefined;
  }

  /** Ends commands that run without their server, told from later processes with the same id by when they started. */
  async #endLeftovers(sandbox: string): Promise<void> {
    const records = this.#records(sandbox);
    for (const name of namesIn(records).filter((file) => file.endsWith(RUNNING))) {
      const { group, start } = await readJson(join(records, name));
      if (typeof group === "number" && typeof start === "string" && (await startOf(group)) === start) signalGroup(group, SIGKILL);
      await rm(join(records, name), { force: true });
    }
  }

  async clear(sandbox: string, logs: "keep" | "remove"): Promise<void> {
    await this.#walls.get(sandbox)?.stop(0);
    this.#walls.delete(sandbox);
    await this.#endLeftovers(sandbox);
    if (logs === "remove") await rm(this.#records(sandbox), { recursive: true, force: true });
    else await rm(placeFile(this.#records(sandbox)), { force: true });
  }

  async reconcile(keep: () => Promise<ReadonlySet<string>>): Promise<string[]> {
    const seen = namesIn(this.#folder);
    const kept = await keep();
    const removed: string[] = [];
    for (const sandbox of seen) {
      if (kept.has(sandbox) || !hasIdPrefix("sandbox", sandbox)) continue;
      await this.clear(sandbox, "remove");
      removed.push(`commands and logs of ${sandbox}`);
    }
    return removed;
  }

  /** Without walls the network is that of the machine. */
  sockets(): undefined {
    return undefined;
  }

  /** Nothing of reality is hidden. */
  async masked(): Promise<string[]> {
    return [];
  }

  async hidesAsNow(): Promise<boolean> {
    return true;
  }

  /** There is no process 1 that could end. */
  onExit(): void {}

  /** Commands end with their server, since no other process reads their output; the copies stay. */
  async close(): Promise<void> {
    await Promise.all([...this.#walls.values()].map((walls) => walls.stop(LIMITS.stopGraceMs)));
    this.#walls.clear();
  }

  #records(sandbox: string): string {
    return join(this.#folder, sandbox);
  }
}

function placeFile(records: string): string {
  return join(records, `${PLACE}.json`);
}

/** The fields of a file that a crash may have torn; none when it is not there. */
async function readJson(file: string): Promise<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(await readFile(file, "utf8"));
    return typeof found === "object" && found !== null ? { ...found } : {};
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}
