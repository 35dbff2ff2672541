/** A project as its path and its config say: what is captured, hidden and shown. */
import { relative, resolve } from "node:path";
import type { CaptureRequest, DataFolder } from "../capture/capture.ts";
import { findProject, isWithin } from "../capture/project.ts";
import { loadProjectConfig, type LoadedConfig } from "../config/project-config.ts";
import { VivError } from "../schema/errors.ts";
import { newId } from "../schema/ids.ts";
import { LIMITS } from "../schema/limits.ts";
import type { ProjectRow, Store } from "../store/store.ts";

export interface ProjectView extends LoadedConfig {
  readonly row: ProjectRow;
}

/** The project at or above a path; known to the store from its first use on. */
export async function openProject(store: Store, path: string, stateFolder: string): Promise<ProjectView> {
  const folder = findProject(path, stateFolder);
  const row = (await store.projectByPath(folder)) ?? (await addProject(store, folder));
  return { row, ...loadProjectConfig(folder, row.trusted) };
}

async function addProject(store: Store, path: string): Promise<ProjectRow> {
  const made: ProjectRow = { id: newId("project"), path, trusted: null };
  return store.change(async (change) => {
    const existing = await change.projectByPath(path);
    if (existing === undefined) await change.putProject(made);
    return existing ?? made;
  });
}

/** With the folders of services as they are in reality, unless others are given. */
export function captureRequest(view: ProjectView, data: readonly DataFolder[] = dataFolders(view, false)): CaptureRequest {
  const { capture } = view.config;
  const elsewhere = dataFolders(view, true).map(({ path }) => path);
  return {
    project: view.row.id,
    path: view.row.path,
    exclude: [...capture.exclude, ...pathsInside(view, [...view.config.mask, ...elsewhere])],
    live: capture.live,
    limitBytes: capture.limit ?? LIMITS.maxCapturedBytes,
    data,
  };
}

/** A folder is mounted over what is there, and must not hide the project. */
export function refuseHiding({ row, config, file }: ProjectView): void {
  for (const [name, { data, take }] of Object.entries(config.services)) {
    const path = data.find((folder) => isWithin(row.path, folder) && (folder !== row.path || take !== undefined));
    if (path === undefined) continue;
    throw new VivError("config_invalid", `${file ?? ""}: services.${name}.data: ${path} holds the project itself.`);
  }
}

/** Of the services whose data is taken by a line of their own, or of the others. */
function dataFolders({ config }: ProjectView, taken: boolean): { path: string }[] {
  return Object.values(config.services)
    .filter(({ take }) => (take !== undefined) === taken)
    .flatMap(({ data }) => data.map((path) => ({ path })));
}

/** Of the paths of a config, those below the project, relative to it: what is hidden there is not captured. */
function pathsInside(view: ProjectView, paths: readonly string[]): string[] {
  return paths
    .filter((path) => !isInHome(path))
    .map((path) => relative(view.row.path, resolve(view.row.path, path)))
    .filter((path) => path !== "" && !path.startsWith(".."));
}

/** The others: absolute, or with a `~` that stands for the home of whoever creates the sandbox. */
export function pathsOutside(view: ProjectView, paths: readonly string[]): string[] {
  return paths
    .map((path) => (isInHome(path) ? path : resolve(view.row.path, path)))
    .filter((path) => isInHome(path) || relative(view.row.path, path).startsWith(".."));
}

function isInHome(path: string): boolean {
  return path === "~" || path.startsWith("~/");
}
