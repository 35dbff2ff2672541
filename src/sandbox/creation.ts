/** Making a sandbox: row, volume, walls, in an order that a crash at any point can be cleaned up after. */
import { relative, resolve } from "node:path";
import { filterEnvironment } from "../capture/environment.ts";
import type { Base, CaptureRequest } from "../capture/capture.ts";
import { findProject } from "../capture/project.ts";
import { loadProjectConfig, type LoadedConfig } from "../config/project-config.ts";
import type { Driver, LaunchRequest, Walls } from "../drivers/drivers.ts";
import { describe } from "../host/log.ts";
import type { ProjectConfig } from "../schema/config.ts";
import type { CreateInput } from "../schema/contracts.ts";
import { VivError } from "../schema/errors.ts";
import { newId } from "../schema/ids.ts";
import { LIMITS } from "../schema/limits.ts";
import type { DriverName } from "../schema/sandbox.ts";
import type { ProjectRow, SandboxRow } from "../store/store.ts";
import type { VolumePaths, VolumeSource } from "../volumes/volumes.ts";
import { Admission, effectiveLimits } from "./admission.ts";
import { inventName } from "./names.ts";
import type { Backend, Parts } from "./parts.ts";
import { advance } from "./state.ts";

export interface ProjectView extends LoadedConfig {
  readonly row: ProjectRow;
}

export class Creation {
  readonly #parts: Parts;
  readonly #admission: Admission;
  /** Names and ranges of sandboxes that exist or are being made. */
  readonly #names = new Map<string, string>();
  readonly #ranges = new Map<number, string>();
  /** Bases of sandboxes that are being made and are not in the store yet, counted. */
  readonly #bases = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#admission = new Admission(parts.user);
  }

  /** Takes the names and ranges of what is in the store. */
  register(rows: readonly SandboxRow[]): void {
    for (const row of rows) {
      this.#names.set(row.name, row.id);
      this.#ranges.set(row.range, row.id);
    }
  }

  release(row: Pick<SandboxRow, "name" | "range">): void {
    this.#names.delete(row.name);
    this.#ranges.delete(row.range);
  }

  /** Whether a sandbox that is being made starts from this base. */
  startsFrom(base: string): boolean {
    return this.#bases.has(base);
  }

  async #holding<T>(base: Base, work: () => Promise<T>): Promise<T> {
    this.#bases.set(base.id, (this.#bases.get(base.id) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = (this.#bases.get(base.id) ?? 1) - 1;
      if (left === 0) this.#bases.delete(base.id);
      else this.#bases.set(base.id, left);
    }
  }

  get count(): number {
    return this.#ranges.size;
  }

  async project(path: string): Promise<ProjectView> {
    const folder = findProject(path, this.#parts.state);
    let row = await this.#parts.store.projectByPath(folder);
    if (row === undefined) {
      const made: ProjectRow = { id: newId("project"), path: folder, trusted: null };
      row = await this.#parts.store.change(async (change) => {
        const existing = await change.projectByPath(folder);
        if (existing === undefined) await change.putProject(made);
        return existing ?? made;
      });
    }
    return { row, ...loadProjectConfig(folder, row.trusted) };
  }

  async create(input: CreateInput): Promise<SandboxRow> {
    const view = await this.project(input.project);
    const backend = this.#backend(input, view.config);
    const { driver, volumes } = backend;
    const limits = effectiveLimits(input.limits, view.config, this.#parts.user);
    refuseUnheldLimits(input, driver);
    await this.#admission.admit(volumes, this.count, 1);
    const base = await backend.capture.base(captureRequest(view));
    const { env, leftOut } = filterEnvironment(input.env ?? {}, view.config.env);
    const now = new Date();
    const idleMs = input.idleMs ?? view.config.idle ?? LIMITS.defaultIdleMs;
    const row = this.#reserve(input.name, {
      state: "creating",
      outcome: null,
      reason: null,
      driver: driver.name,
      walled: driver.capabilities.walled,
      project: view.row.path,
      parent: null,
      limits,
      limitsHeld: driver.capabilities.limits === "hard" && volumes.capabilities.quota === "hard" ? "hard" : "watched",
      storage: volumes.name,
      createdAt: now.toISOString(),
      endedAt: null,
      expiresAt: idleMs === 0 ? null : new Date(now.getTime() + idleMs).toISOString(),
      idleMs,
      labels: input.labels ?? {},
      base: base.id,
      launched: null,
      user: input.user ?? String(this.#parts.uid),
      env,
      environmentLeftOut: leftOut,
      untrusted: view.trusted ? [] : view.widens.map(({ key }) => key),
      masked: [...this.#parts.user.mask, ...outside(view, view.config.mask)],
      exposed: [...this.#parts.user.expose, ...outside(view, view.config.expose)],
      sudo: view.config.sudo,
      home: env["HOME"] ?? this.#parts.home,
      currentSnapshot: null,
      idempotencyKey: input.idempotencyKey ?? null,
      restoring: null,
      removing: false,
    });
    return this.#holding(base, () => this.#bring(row, base, { base: base.id, project: view.row.id }));
  }

  /** A sandbox like another one, from a snapshot of it. */
  async fork(from: SandboxRow, snapshot: string, name: string | undefined): Promise<SandboxRow> {
    await this.#admission.admit(this.#parts.backends.of(from).volumes, this.count, 1);
    const base = await this.#parts.store.base(from.base);
    if (base === undefined) throw new VivError("internal", `The base of ${from.name} is gone.`);
    const now = new Date();
    const row = this.#reserve(name, {
      ...from,
      state: "creating",
      outcome: null,
      reason: null,
      parent: from.id,
      createdAt: now.toISOString(),
      endedAt: null,
      expiresAt: from.idleMs === 0 ? null : new Date(now.getTime() + from.idleMs).toISOString(),
      launched: null,
      currentSnapshot: null,
      idempotencyKey: null,
      restoring: null,
      removing: false,
    });
    return this.#bring(row, base, { snapshot });
  }

  #reserve(name: string | undefined, rest: Omit<SandboxRow, "id" | "name" | "range">): SandboxRow {
    if (name !== undefined && this.#names.has(name)) throw new VivError("name_taken", `There is a sandbox called ${name} already.`);
    let range = 0;
    while (this.#ranges.has(range)) range += 1;
    const row: SandboxRow = { ...rest, id: newId("sandbox"), name: name ?? inventName((taken) => this.#names.has(taken)), range };
    this.#names.set(row.name, row.id);
    this.#ranges.set(range, row.id);
    return row;
  }

  /** From a reserved row to a running sandbox. */
  async #bring(row: SandboxRow, base: Base, source: VolumeSource): Promise<SandboxRow> {
    const { store, reach, live } = this.#parts;
    const { volumes } = this.#parts.backends.of(row);
    // Under way while the row is written: a volume without a row is removed by the reconciler.
    const volume = volumes.create(row.id, source, row.limits.diskBytes);
    volume.catch(() => undefined);
    try {
      await store.change(async (change) => {
        await change.putBase(base);
        await change.putSandbox(row);
        await change.event("sandbox.creating", row.id, { name: row.name, project: row.project });
      });
      reach("create.row");
      const { walls, driver } = await this.launch(row, base, volume.finally(() => reach("create.volume")));
      reach("create.launch");
      const running: SandboxRow = { ...advance(row, "running", new Date()), launched: walls.launched };
      live.add(row.id, walls, driver);
      await store.change(async (change) => {
        await change.putSandbox(running);
        await change.event("sandbox.running", row.id, { name: row.name });
      });
      reach("create.running");
      return running;
    } catch (error) {
      await volume.catch(() => undefined);
      await this.#undo(row, error);
      throw error;
    }
  }

  async launch(row: SandboxRow, base: Base, volume: Promise<VolumePaths>): Promise<{ walls: Walls; driver: Driver }> {
    const { driver } = this.#parts.backends.of(row);
    const request: LaunchRequest = {
      sandbox: row.id,
      name: row.name,
      volume,
      base,
      project: row.project,
      limits: row.limits,
      range: row.range,
      mask: row.masked,
      expose: row.exposed,
      sudo: row.sudo,
      home: row.home,
    };
    return { walls: await driver.launch(request), driver };
  }

  /** Nothing of a failed creation stays but its row, which says why. */
  async #undo(row: SandboxRow, error: unknown): Promise<void> {
    const { store, live, log } = this.#parts;
    const { volumes, driver } = this.#parts.backends.of(row);
    try {
      await live.get(row.id)?.walls.stop(0);
      live.remove(row.id);
      await driver.clear(row.id, "remove");
      await volumes.remove("volume", row.id);
      await store.change(async (change) => {
        if ((await change.sandbox(row.id)) === undefined) return;
        await change.removeSandbox(row.id);
        await change.event("sandbox.failed", row.id, { name: row.name, reason: describe(error) });
      });
    } catch (second) {
      log.warn("cleaning up after a failed creation failed; the reconciler will", { sandbox: row.id, error: describe(second) });
    } finally {
      this.release(row);
    }
  }

  /** Walls, unless the caller or a trusted config accepts to go without. */
  #backend(input: CreateInput, config: ProjectConfig): Backend {
    const { backends } = this.#parts;
    const wanted: DriverName = input.unwalled === true && !backends.has("native") ? "folder" : (config.driver ?? "native");
    if (!backends.has(wanted)) throw new VivError("no_walls", "This machine can't put walls around a sandbox.");
    return backends.get(wanted);
  }
}

export function captureRequest(view: ProjectView): CaptureRequest {
  const { capture, services } = view.config;
  return {
    project: view.row.id,
    path: view.row.path,
    exclude: [...capture.exclude, ...inside(view, view.config.mask)],
    live: capture.live,
    limitBytes: capture.limit ?? LIMITS.maxCapturedBytes,
    data: Object.values(services).flatMap((service) => service.data),
  };
}

/** Of the paths of a config, those below the project, relative to it: what is hidden there is not captured. */
function inside(view: ProjectView, paths: readonly string[]): string[] {
  return paths.map((path) => relative(view.row.path, resolve(view.row.path, path))).filter((path) => path !== "" && !path.startsWith(".."));
}

/** The others, absolute. */
function outside(view: ProjectView, paths: readonly string[]): string[] {
  return paths.map((path) => resolve(view.row.path, path)).filter((path) => relative(view.row.path, path).startsWith(".."));
}

/** An explicit limit that can't be held is refused rather than promised. */
function refuseUnheldLimits(input: CreateInput, driver: Driver): void {
  if (driver.capabilities.limits !== "none") return;
  const asked = Object.keys(input.limits ?? {});
  if (asked.length > 0) throw new VivError("limit_unsupported", `The limit ${asked[0] ?? ""} can't be held by the driver ${driver.name} on this machine.`);
}
