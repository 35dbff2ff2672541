/** What an experiment starts from: reality, a repository, nothing, or what a sandbox or a run was at a moment, frozen before anything ran in it. */
import { basename } from "node:path";
import type { CreateInput } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { ExperimentInput } from "../../base/schema/experiment.ts";
import { projectInside, WORKSPACE } from "../../base/schema/workspace.ts";
import type { ExperimentRow, RunRow, SandboxRow } from "../../base/store/rows.ts";
import { openProject, type ProjectView } from "../../sandbox/projects/projects.ts";
import { openWorkspace, repositoryName, requireProject } from "../../sandbox/projects/workspaces.ts";
import type { ExperimentParts } from "./attempt.ts";

/** The project that an experiment is about, or what stands for it where all attempts start from a repository. */
export async function openOrigin(
  { parts, sandboxes }: ExperimentParts,
  { project, git, empty, from, promote }: ExperimentInput,
): Promise<{ readonly view: ProjectView; readonly inside: string }> {
  const { store, state } = parts;
  const elsewhere = git === undefined ? (empty === true ? "empty" : undefined) : repositoryName(git.url);
  if (elsewhere !== undefined && promote)
    throw new VivError(
      "no_project",
      `Attempts start from ${git?.url ?? "an empty workspace"}: there is no project on this machine to promote into.`,
    );
  const isOne = (git === undefined || empty !== true) && project === undefined && from === undefined;
  if (elsewhere !== undefined && isOne) return { view: await openWorkspace(parts, elsewhere), inside: WORKSPACE };
  if (elsewhere === undefined && project !== undefined) {
    const view = await openProject(store, project, state);
    return { view, inside: view.row.path };
  }
  if (elsewhere === undefined && from !== undefined) return openAround((await sourceOf({ parts, sandboxes }, from)).row, parts, promote);
  throw new VivError("invalid_input", "An experiment starts from one of these: a project, or a sandbox of it, a git repository, nothing.");
}

/** What a sandbox belongs to: its project, or what stands for it. */
async function openAround(
  row: SandboxRow,
  parts: ExperimentParts["parts"],
  promote: boolean,
): Promise<{ readonly view: ProjectView; readonly inside: string }> {
  if (promote) requireProject(row, "promote into");
  const isElsewhere = row.start !== undefined;
  const view = isElsewhere ? await openWorkspace(parts, basename(row.project)) : await openProject(parts.store, row.project, parts.state);
  return { view, inside: projectInside(row) };
}

export async function makeOrigin(
  all: ExperimentParts,
  row: ExperimentRow,
  wait: AbortSignal | undefined,
  onWait: (reason: string) => void,
): Promise<{ sandbox: string; snapshot: string }> {
  const { sandboxes, clones } = all;
  const make = async (): Promise<{ sandbox: string; snapshot: string }> => {
    const { from, git } = row.input;
    const request = createRequest(all, row);
    if (from === undefined && git === undefined) return sandboxes.creation.freeze(request);
    const made = from === undefined ? await sandboxes.create(request) : await forkOrigin(all, row, from);
    return { sandbox: made.id, snapshot: (await sandboxes.snapshot(made.id, undefined)).id };
  };
  return wait === undefined ? make() : clones.patiently(make, wait, onWait);
}

function createRequest({ clones }: ExperimentParts, { id, project, input }: ExperimentRow): CreateInput {
  return {
    ...(input.empty === true ? { empty: true } : input.git === undefined ? { project } : { git: input.git }),
    // It and its forks end when the experiment does, not before.
    idleMs: 0,
    labels: clones.labels(id, "origin"),
    ...(input.env === undefined ? {} : { env: input.env }),
    ...(input.limits === undefined ? {} : { limits: input.limits }),
    ...(input.level === undefined ? {} : { level: input.level }),
    ...(input.yolo === undefined ? {} : { yolo: input.yolo }),
    ...(input.role === undefined ? {} : { role: input.role }),
    ...(input.unwalled === undefined ? {} : { unwalled: input.unwalled }),
  };
}

async function forkOrigin(all: ExperimentParts, { id, project, input }: ExperimentRow, from: string): Promise<SandboxRow> {
  const { sandboxes, clones } = all;
  const source = await sourceOf(all, from);
  if (source.row.project !== project)
    throw new VivError("invalid_input", `${from} is of the project ${source.row.project}, not of ${project}.`);
  const snapshot = source.snapshot ?? (await sandboxes.snapshot(source.row.id, undefined)).id;
  const { level, yolo, role } = input;
  const row = await sandboxes.branch(source.row.id, snapshot, clones.labels(id, "origin"), { level, yolo, role });
  if (source.snapshot === undefined) await sandboxes.snapshots.remove(source.row, snapshot);
  await sandboxes.extend(row.id, undefined, 0);
  return row;
}

async function sourceOf(
  { sandboxes, parts }: Pick<ExperimentParts, "sandboxes" | "parts">,
  from: string,
): Promise<{ row: SandboxRow; snapshot?: string }> {
  const run = await parts.store.runs.get(from);
  if (run !== undefined) return leftBy(sandboxes, run);
  const named = (await parts.store.snapshots.list()).filter(({ id, name }) => id === from || name === from);
  const [snapshot] = named;
  if (snapshot === undefined) return { row: await sandboxes.find(from) };
  if (named.length > 1) throw new VivError("invalid_input", `${named.length} snapshots are called ${from}: name one by its id.`);
  return { row: await sandboxes.find(snapshot.sandbox), snapshot: snapshot.id };
}

/** The state that a run left; of one under way, its sandbox as it is now. */
async function leftBy(sandboxes: ExperimentParts["sandboxes"], run: RunRow): Promise<{ row: SandboxRow; snapshot?: string }> {
  const gone = (cause?: unknown): VivError =>
    new VivError("not_found", `The sandbox of run ${run.id} is gone, and with it the files that it left.`, {
      remedy: `Give the task anew; \`viv context ${run.id}\` still shows what was said and done.`,
      ...(cause === undefined ? {} : { cause }),
    });
  if (run.sandbox === null) throw gone();
  try {
    const row = await sandboxes.find(run.sandbox);
    return run.snapshot === null ? { row } : { row, snapshot: (await sandboxes.snapshots.findWhole(row, run.snapshot)).id };
  } catch (error) {
    throw error instanceof VivError && error.code === "not_found" ? gone(error) : error;
  }
}
