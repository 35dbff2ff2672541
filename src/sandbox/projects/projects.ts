/** A project as its path and its config say: what is captured, hidden and shown. */
import { homedir } from "node:os";
import { join, relative, resolve } from "node:path";
import type { CaptureRequest, DataFolder } from "../../machine/capture/capture.ts";
import { homeFolders, readPeople } from "../../machine/capture/people.ts";
import { findProject, isWithin } from "../../machine/capture/project.ts";
import { loadProjectConfig, NO_CONFIG, type LoadedConfig } from "../../base/config/project-config.ts";
import { realPlace } from "../../base/host/real-place.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Store } from "../../base/store/store.ts";
import type { ProjectRow, SandboxRow } from "../../base/store/rows.ts";

export interface ProjectView extends LoadedConfig {
  readonly row: ProjectRow;
}

/** Where a project is, and what its config says. */
interface ConfiguredProject extends Pick<LoadedConfig, "config"> {
  readonly row: Pick<ProjectRow, "path">;
}

/** The project at or above a path; known to the store from its first use on. */
export async function openProject(store: Store, path: string, stateFolder: string): Promise<ProjectView> {
  const folder = findProject(path, stateFolder);
  const row = await knownProject(store, folder);
  return { row, ...loadProjectConfig(folder, row.trusted) };
}

/** The project of a sandbox. One that started from no project of reality has an empty folder, and no config. */
export async function projectOf(store: Store, { project, start }: SandboxRow, stateFolder: string): Promise<ProjectView> {
  if (start === undefined) return openProject(store, project, stateFolder);
  return { row: await knownProject(store, project), ...NO_CONFIG };
}

/** The row of a folder, made at its first use. */
export async function knownProject(store: Store, path: string): Promise<ProjectRow> {
  return (await store.projects.find({ path })) ?? addProject(store, path);
}

async function addProject(store: Store, path: string): Promise<ProjectRow> {
  const made: ProjectRow = { id: newId("project"), path, trusted: null };
  return store.change(async (change) => {
    const existing = await change.projects.find({ path });
    if (existing === undefined) await change.projects.put(made);
    return existing ?? made;
  });
}

/** With the folders of services as they are in reality, unless others are given. */
export function captureRequest(
  view: ProjectView,
  user: UserConfig,
  data: readonly DataFolder[] = dataFolders(view, false),
): CaptureRequest {
  const { capture } = view.config;
  const elsewhere = dataFolders(view, true).map(({ path }) => path);
  return {
    project: view.row.id,
    path: view.row.path,
    exclude: pathsInside(view, [...capture.exclude.map((path) => `./${path}`), ...view.config.mask, ...user.mask, ...elsewhere]),
    hidden: [...view.config.mask, ...user.mask].flatMap((path) => spellings(view.row.path, path)),
    live: capture.live,
    limitBytes: capture.limit ?? LIMITS.maxCapturedBytes,
    data,
  };
}

/** The folder that a caller's lines run in: absolute, or relative to the project; undefined stands for the project's own. */
export function folderIn(project: string, folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  const meant = resolve(project, folder);
  if (isWithin(meant, project)) return meant;
  throw new VivError("invalid_input", `${meant} is not in the project ${project}.`, { remedy: "Name a folder of the project." });
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
function pathsInside({ row }: ProjectView, paths: readonly string[]): string[] {
  return maskedInside(row.path, paths).map((path) => relative(row.path, path));
}

/** The places that a path of a config may mean, absolute, and where links lead from there. */
function spellings(project: string, path: string): string[] {
  const meant = isInHome(path) ? homesAround(project).map((home) => join(home, path.slice(1))) : [resolve(project, path)];
  return [...new Set(meant.flatMap((each) => [each, realPlace(each)]))];
}

/** The places below the project that paths of a config hide, absolute. */
export function maskedInside(project: string, paths: readonly string[]): string[] {
  return paths.flatMap((path) => spellings(project, path)).filter((path) => path !== project && isWithin(path, project));
}

/** Everything that a config hides, absolute, or with a `~` that stands for the home of the caller that creates the sandbox. */
export function hiddenPaths({ row, config }: ConfiguredProject): string[] {
  return [...config.mask, ...config.capture.exclude.map((path) => `./${path}`)].map((path) => absolute(row.path, path));
}

/** What it shows outside the project, in the same form. */
export function shownPaths({ row, config }: ConfiguredProject): string[] {
  return config.expose.map((path) => absolute(row.path, path)).filter((path) => !isWithin(path, row.path));
}

function absolute(project: string, path: string): string {
  return isInHome(path) ? path : resolve(project, path);
}

function isInHome(path: string): boolean {
  return path === "~" || path.startsWith("~/");
}

/** The homes that `~` may stand for if it leads into the project. */
function homesAround(project: string): string[] {
  return homeFolders(readPeople(), [homedir()]).filter((home) => isWithin(project, home));
}
