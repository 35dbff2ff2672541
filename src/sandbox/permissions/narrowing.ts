/**
 * What a sandbox still has when its processes are started anew, in a fork, by a rollback or a start: never more than a new one
 * of its project would get now. Configs and trust may have narrowed since its row was written.
 */
import { lstatSync, type Stats } from "node:fs";
import { join, relative } from "node:path";
import { filterEnvironment } from "../../machine/capture/environment.ts";
import { loadProjectConfig, NO_CONFIG, type LoadedConfig } from "../../base/config/project-config.ts";
import type { ProjectConfig, UserConfig } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { comparedBase } from "../projects/bases.ts";
import { narrowedNetwork } from "./network-narrowing.ts";
import type { Parts } from "../shared/parts.ts";
import { hiddenPaths, maskedInside, shownPaths } from "../projects/projects.ts";

const INSTEAD = { remedy: "Make a new sandbox with `viv create`, and bring the changes over with `viv diff --patch`." };

type Widths = Pick<
  SandboxRow,
  "masked" | "exposed" | "sudo" | "limits" | "env" | "environmentSet" | "environmentLeftOut" | "untrusted" | "services" | "network"
>;

/** The row with what a sandbox of its project may have now. */
export async function narrowed(parts: Pick<Parts, "store" | "user">, row: SandboxRow): Promise<SandboxRow> {
  return { ...row, ...widths(row, await configNow(parts, row), parts.user) };
}

/** The same for a fork. It is a new sandbox: where it holds what can't be taken from it, it is not made. */
export async function narrowedFork(parts: Pick<Parts, "store" | "user" | "backends">, row: SandboxRow): Promise<SandboxRow> {
  const now = await configNow(parts, row);
  if (!row.walled && now.config.driver !== row.driver && parts.backends.walled() !== undefined)
    throw new VivError("unsupported", `A fork of ${row.name} would have no walls, and a new sandbox of ${row.project} would.`, INSTEAD);
  const before = new Set(maskedInside(row.project, row.masked));
  const added = maskedInside(row.project, [...now.config.mask, ...parts.user.mask]).filter((path) => !before.has(path));
  const held = added.length === 0 ? undefined : await firstCaptured(parts, row, added);
  if (held === undefined) return { ...row, ...widths(row, now, parts.user) };
  const path = relative(row.project, held);
  throw new VivError(
    "unsupported",
    `${row.name} holds ${path} of the project, which is masked by now, and so would a fork of it.`,
    INSTEAD,
  );
}

/** Undefined also for what would lie below a file. */
function statusOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Of paths in the project, the first that its base has. */
async function firstCaptured(parts: Pick<Parts, "backends">, row: SandboxRow, paths: readonly string[]): Promise<string | undefined> {
  const { comparison } = parts.backends.of(row).storage;
  const of = row.state === "completed" && row.currentSnapshot !== null ? { snapshot: row.currentSnapshot } : { volume: row.id };
  const { old, before } = await comparison.sides(of, comparedBase(row));
  const folders = before?.base ?? old;
  return paths.find((path) => {
    const found = folders.map((folder) => statusOf(join(folder, relative(row.project, path)))).find(Boolean);
    // A layer says by a device that what the layers below it hold is gone.
    return found !== undefined && !found.isCharacterDevice();
  });
}

function widths(row: SandboxRow, now: LoadedConfig, user: UserConfig): Widths {
  const view = { row: { path: row.project }, config: now.config };
  const shown = new Set([...user.expose, ...shownPaths(view)]);
  const { env, leftOut } = environment(row, now.config);
  return {
    masked: [...new Set([...row.masked, ...user.mask, ...hiddenPaths(view)])],
    exposed: row.exposed.filter((path) => shown.has(path)),
    sudo: row.sudo && now.config.sudo,
    limits: within(row.limits, user.ceilings),
    env,
    environmentSet: row.environmentSet?.filter((name) => name in env),
    environmentLeftOut: [...new Set([...row.environmentLeftOut, ...leftOut])].toSorted(),
    untrusted: [...now.untrusted],
    services: Object.fromEntries(Object.entries(row.services).filter(([name]) => name in now.config.services)),
    network: narrowedNetwork(row, now.config.network, user.network),
  };
}

/** What a config passed or set that no longer says so goes; what it set has the value that it sets now. */
function environment({ env, environmentSet = [] }: SandboxRow, { env: rules }: ProjectConfig): ReturnType<typeof filterEnvironment> {
  const given = Object.entries(env).filter(([name]) => !environmentSet.includes(name));
  const set = Object.entries(rules.set).filter(([name]) => environmentSet.includes(name));
  return filterEnvironment(Object.fromEntries(given), { ...rules, set: Object.fromEntries(set) });
}

function within(limits: Limits, { cpus, memory, disk, processes }: UserConfig["ceilings"]): Limits {
  return {
    cpus: Math.min(limits.cpus, cpus ?? limits.cpus),
    memoryBytes: Math.min(limits.memoryBytes, memory ?? limits.memoryBytes),
    diskBytes: Math.min(limits.diskBytes, disk ?? limits.diskBytes),
    processes: Math.min(limits.processes, processes ?? limits.processes),
  };
}

/** One that can't be read opens nothing. */
async function configNow({ store }: Pick<Parts, "store">, { project }: SandboxRow): Promise<LoadedConfig> {
  const known = await store.projects.find({ path: project });
  try {
    return loadProjectConfig(project, known?.trusted ?? null);
  } catch (error) {
    if (!(error instanceof VivError)) throw error;
    return NO_CONFIG;
  }
}
