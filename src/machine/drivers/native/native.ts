/** The native driver: namespaces, an overlay of the whole machine, cgroups, and the cell as process 1. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { CellError } from "../../../base/host/helper.ts";
import type { Cgroups } from "../../../base/host/cgroups.ts";
import type { Fields } from "../../../base/host/frames.ts";
import { namesIn } from "../../../base/host/names-in.ts";
import { firstProcessesHolding } from "../../../base/host/processes.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { hasIdPrefix } from "../../../base/schema/ids.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Limits } from "../../../base/schema/sandbox.ts";
import type { CommandLogs, Driver, DriverCapabilities, MaskRequest, LaunchRequest, Walls } from "../drivers.ts";
import type { Launched } from "../../../base/store/rows.ts";
import { withTimeout } from "../../../base/host/with-timeout.ts";
import { CellClient } from "./cell-client.ts";
import { launchFields } from "./launch-fields.ts";
import { LogFolders } from "../log-folders.ts";
import { readProcess1, type Process1 } from "./process1.ts";
import { rootPlan, userModeFolders, userPlan, type Field, type PlanRequest, type SharedFoldersLayer } from "./plan.ts";
import { userFolders } from "./user-folders.ts";
import type { Layer } from "../../capture/masks.ts";
import { readShared, type SharedList } from "../../volumes/shared.ts";
import { PROJECT_SLOT } from "../../volumes/volumes.ts";
import { NativeWalls } from "./walls.ts";

/** Gives the mask layer for a launch; capture knows what is secret on this machine. */
export interface Masks {
  layer(request: MaskRequest): Promise<Layer>;
  /** Removes layers that no sandbox has mounted; the names are those of the ones that are. */
  sweep(mounted: ReadonlySet<string>): Promise<void>;
  /** The folder of the layer that shows shared folders below the project, which is `place` in it. */
  shared(layer: Layer, place: string, list: SharedList): Promise<string>;
}

export interface NativeOptions {
  readonly host: CellHost;
  readonly mode: "root" | "user";
  readonly uid: number;
  readonly gid: number;
  /** State folder of the server. */
  readonly home: string;
  /** The folder for the sockets of sandboxes. */
  readonly run: string;
  /** Id of that folder. */
  readonly owner: string;
  /** Absent where this process may not make groups. */
  readonly cgroups: Cgroups | undefined;
  readonly masks: Masks;
}

const UNKNOWN_END_MS = 3_000;

export class NativeDriver implements Driver {
  readonly name = "native";
  readonly capabilities: DriverCapabilities;
  readonly logs: CommandLogs = new LogFolders((sandbox) => this.#logFolder(sandbox));
  readonly #options: NativeOptions;
  readonly #boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  readonly #listeners: ((sandbox: string) => void)[] = [];
  /** Process 1 of every sandbox that was launched or adopted and not cleared. */
  readonly #launched = new Map<string, Process1>();
  /** Sandboxes that are being ended on purpose, and who waits for that. */
  readonly #ending = new Map<string, PromiseWithResolvers<void>>();

  constructor(options: NativeOptions) {
    this.#options = options;
    const hard = options.cgroups !== undefined;
    mkdirSync(join(options.home, "logs"), { recursive: true, mode: 0o700 });
    this.capabilities = {
      walled: true,
      pause: hard,
      limits: hard ? "hard" : "watched",
      limitsSeen: hard ? ["cpus", "memory"] : ["memory"],
      allUsers: options.mode === "root",
      ports: true,
    };
  }

  async launch(request: LaunchRequest): Promise<Walls> {
    // What goes wrong below clears what this launch made, and must not clear what another launch made.
    if (existsSync(this.#socket(request.sandbox))) throw new VivError("internal", `Sandbox ${request.sandbox} is launched already.`);
    try {
      // Process 1 is another user and finds the sockets by name; the state folder above is closed to all other users.
      mkdirSync(this.#runFolder(request.sandbox), { recursive: true, mode: 0o711 });
      const cell = new CellClient(this.#socket(request.sandbox));
      const reply = await this.#launchWith(request, cell);
      const [pid, start] = [reply.number("pid") ?? 0, reply.get("start") ?? ""];
      const process1 = { pid, start, boot: this.#boot, owner: this.#options.owner };
      return this.#walls(request.sandbox, process1, request.limits, cell);
    } catch (error) {
      await this.clear(request.sandbox, "remove");
      if (!(error instanceof CellError)) throw error;
      throw new VivError(
        error.code === "no-space" ? "disk_full" : "cell_failed",
        `The sandbox could not be launched: ${error.step}: ${error.message}.`,
        { cause: error },
      );
    }
  }

  /** The kernel makes namespaces while the volume is made and all else is done; the helper is told of the disk when both are there. */
  async #launchWith(request: LaunchRequest, cell: CellClient): Promise<Fields> {
    const { host } = this.#options;
    const { sandbox } = request;
    const places = { socket: this.#socket(sandbox), run: this.#runFolder(sandbox), logs: this.#logFolder(sandbox) };
    const launching = host.request("launch", [...launchFields(request, this.#options, places), ["disk_later", "1"]]);
    launching.catch(() => undefined);
    const tell = async (fields: readonly Field[]): Promise<void> => {
      try {
        await host.request("launch.disk", [["sandbox", sandbox], ...fields]);
      } catch (error) {
        // A launch that has failed by now tells why itself.
        if (!(error instanceof CellError)) throw error;
      }
    };
    try {
      // One that fails while it waits for its sandbox says so at once.
      const content = await Promise.race([request.content, launching.then(() => request.content)]);
      const making = content.volume();
      making.catch(() => undefined);
      const masking = this.#mask(content);
      masking.catch(() => undefined);
      content.meanwhile?.();
      const mask = await masking;
      writeFileSync(this.#maskFile(sandbox), basename(mask.path), { mode: 0o600 });
      const plan = await this.#plan({ ...content, volume: await making }, mask);
      const told = tell([["hostname", content.name], ...plan]);
      if (content.isUsedAtOnce) cell.prepare();
      const launched = withTimeout(launching, LIMITS.launchTimeoutMs, `The launch of sandbox ${content.name}`);
      return (await Promise.all([launched, told]))[0];
    } catch (error) {
      // Else it would wait for a disk as long as the helper lives.
      tell([["cancel", "1"]]).catch(() => undefined);
      await withTimeout(launching, UNKNOWN_END_MS, `The end of sandbox ${sandbox}`).catch(() => undefined);
      throw error;
    }
  }

  async #plan(request: PlanRequest, mask: Layer): Promise<Field[]> {
    return this.#options.mode === "root" ? await this.#rootPlan(request, mask) : this.#userPlan(request, mask);
  }

  #mask({ home, project, mask, expose }: MaskRequest): Promise<Layer> {
    return this.#options.masks.layer({ home, project, mask, expose });
  }

  async #rootPlan(request: PlanRequest, mask: Layer): Promise<Field[]> {
    const shared = readShared(request.volume.folder);
    const joined: SharedFoldersLayer | undefined =
      shared === undefined ? undefined : { ...shared, layer: await this.#options.masks.shared(mask, `/${PROJECT_SLOT}`, shared) };
    return rootPlan(request, mask, mask.mounts, joined);
  }

  #userPlan(request: PlanRequest, mask: Layer): Field[] {
    const folders = userFolders({ state: this.#options.home, mounts: mask.mounts, masked: mask.masked });
    makeFolders(request.volume.folder, userModeFolders(folders, request.home));
    return userPlan(request, mask, mask.mounts, folders);
  }

  async adopt(sandbox: string, launched: Launched, limits: Limits): Promise<Walls | undefined> {
    const { owner } = this.#options;
    const process1 = readProcess1(launched);
    // In a copy of a state folder stand the processes of the original.
    if (process1 === undefined || process1.boot !== this.#boot || (process1.owner ?? owner) !== owner) return undefined;
    return (await this.#isWatched(sandbox, process1))
      ? this.#walls(sandbox, process1, limits, new CellClient(this.#socket(sandbox)))
      : undefined;
  }

  /** Lets the helper watch for the end of a process 1; false when that has come. */
  async #isWatched(sandbox: string, { pid, start }: Process1): Promise<boolean> {
    try {
      await this.#options.host.request("adopt", [
        ["sandbox", sandbox],
        ["pid", String(pid)],
        ["start", start],
      ]);
      return true;
    } catch (error) {
      if (error instanceof CellError && error.code === "not-found") return false;
      throw error;
    }
  }

  /** For a helper that was started anew: it watches every sandbox, and reports those that ended meanwhile. */
  async rejoin(): Promise<void> {
    for (const [sandbox, process1] of this.#launched) if (!(await this.#isWatched(sandbox, process1))) this.exited(sandbox);
  }

  #walls(sandbox: string, process1: Process1, limits: Limits, cell: CellClient): NativeWalls {
    this.#launched.set(sandbox, process1);
    return new NativeWalls({
      sandbox,
      process1,
      cell,
      host: this.#options.host,
      cgroups: this.#options.cgroups,
      limits,
      ended: () => {
        const waiting = this.#ending.get(sandbox) ?? Promise.withResolvers<void>();
        this.#ending.set(sandbox, waiting);
        return waiting.promise;
      },
    });
  }

  /** Called by the server with the events of the cell host. */
  exited(sandbox: string): void {
    const waiting = this.#ending.get(sandbox);
    waiting?.resolve();
    if (waiting !== undefined) return;
    for (const listener of this.#listeners) listener(sandbox);
  }

  onExit(listener: (sandbox: string) => void): void {
    this.#listeners.push(listener);
  }

  async clear(sandbox: string, logs: "keep" | "remove"): Promise<void> {
    if (!this.#ending.has(sandbox) && existsSync(this.#socket(sandbox))) await this.#endUnknown(sandbox);
    await this.#options.cgroups?.remove(sandbox);
    // A few names in memory: that is done sooner than handed to another thread.
    rmSync(this.#runFolder(sandbox), { recursive: true, force: true });
    if (logs === "remove") await rm(this.#logFolder(sandbox), { recursive: true, force: true });
    this.#ending.delete(sandbox);
    this.#launched.delete(sandbox);
  }

  /** A launch whose server died before it wrote down the process id: process 1 answers at its socket, or is known by its log. */
  async #endUnknown(sandbox: string): Promise<void> {
    const ended = new CellClient(this.#socket(sandbox)).stop(0);
    const wait = () => withTimeout(ended, UNKNOWN_END_MS, `The end of sandbox ${sandbox}`);
    try {
      await wait();
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "timeout") throw error;
      for (const pid of firstProcessesHolding(this.#logFolder(sandbox))) process.kill(pid, "SIGKILL");
      await wait();
    }
  }

  async reconcile(keep: () => Promise<ReadonlySet<string>>): Promise<string[]> {
    const seen = new Set([
      ...(this.#options.cgroups?.names() ?? []),
      ...namesIn(this.#options.run),
      ...namesIn(join(this.#options.home, "logs")),
    ]);
    const kept = await keep();
    const removed: string[] = [];
    const failures: unknown[] = [];
    for (const sandbox of seen) {
      if (kept.has(sandbox) || !hasIdPrefix("sandbox", sandbox)) continue;
      try {
        await this.#endLeftover(sandbox);
        await this.clear(sandbox, "remove");
        removed.push(`groups, sockets and logs of ${sandbox}`);
      } catch (error) {
        // A process that can't die now keeps its group; the others go all the same.
        failures.push(error);
      }
    }
    await this.#sweepMasks();
    if (failures.length > 0) throw failures[0];
    return removed;
  }

  /** Every sandbox says which layer it has mounted; if one does not, none is removed. */
  async #sweepMasks(): Promise<void> {
    const sandboxes = namesIn(this.#options.run).filter((name) => hasIdPrefix("sandbox", name));
    if (!sandboxes.every((sandbox) => existsSync(this.#maskFile(sandbox)))) return;
    await this.#options.masks.sweep(new Set(sandboxes.map((sandbox) => readFileSync(this.#maskFile(sandbox), "utf8"))));
  }

  /** Processes of a sandbox without a row: its group still names them. */
  async #endLeftover(sandbox: string): Promise<void> {
    const { cgroups } = this.#options;
    if (cgroups === undefined) return;
    if (cgroups.processes(sandbox).length > 0) await cgroups.thaw(sandbox);
    for (const pid of cgroups.processes(sandbox)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }

  sockets(sandbox: string): string {
    return this.#runFolder(sandbox);
  }

  async masked(hiding: MaskRequest): Promise<string[]> {
    const layer = await this.#mask(hiding);
    return layer.masked.filter((path) => isThere(path));
  }

  async hidesAsNow(sandbox: string, hiding: MaskRequest): Promise<boolean> {
    return basename((await this.#mask(hiding)).path) === readFileSync(this.#maskFile(sandbox), "utf8");
  }

  async close(): Promise<void> {
    await this.#options.host.close();
  }

  #runFolder(sandbox: string): string {
    return join(this.#options.run, sandbox);
  }

  #logFolder(sandbox: string): string {
    return join(this.#options.home, "logs", sandbox);
  }

  #maskFile(sandbox: string): string {
    return join(this.#runFolder(sandbox), "mask");
  }

  #socket(sandbox: string): string {
    return join(this.#runFolder(sandbox), "cell.sock");
  }
}

/** Also what only others may look at. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/** The sandbox wrote what is there already: a link of it is not followed, and the launch then says what is in its way. */
function makeFolders(parent: string, names: readonly string[]): void {
  for (const name of names) {
    let folder = parent;
    for (const part of name.split("/")) {
      folder = join(folder, part);
      const there = lstatSync(folder, { throwIfNoEntry: false });
      if (there === undefined) mkdirSync(folder, { mode: 0o755 });
      else if (!there.isDirectory()) break;
    }
  }
}
