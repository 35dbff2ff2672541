/** list: what there is of chats, and of the projects that the person opened. */
import type { Client } from "../client/client.ts";
import { isOpened } from "./projects.ts";
import type { Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import type { McpParts } from "./parts.ts";
import { clean, result } from "./results.ts";
import { EXPERIMENT_LABEL, isOurs, MADE_HERE } from "./sessions.ts";
import type { Experiment } from "../../base/schema/experiment.ts";
import type { Run } from "../../base/schema/run.ts";

const LISTED = 20;

export async function list({ client, parts }: Call): Promise<Answer> {
  const [boxes, { runs, experiments }, { promotions }, { approvals }] = await Promise.all([
    client.call("listSandboxes", {}),
    openWork(client, parts),
    client.call("listPromotions", {}),
    client.call("listApprovals", {}),
  ]);
  const open = new Set(experiments.map(({ id }) => id));
  const sandboxes = boxes.sandboxes.filter(
    ({ project, labels }) => isOpened(parts, project) || labels[MADE_HERE] !== undefined || open.has(labels[EXPERIMENT_LABEL] ?? ""),
  );
  const seen = new Set<string | null>(sandboxes.map(({ id }) => id));
  return result({
    projects: parts.projects,
    sandboxes: sandboxes.slice(0, LISTED).map(({ id, name, state, project }) => ({ session_id: id, name, status: state, project })),
    tasks: runs.slice(0, LISTED).map(({ id, task, state, outcome }) => ({ session_id: id, task: oneLine(task), status: outcome ?? state })),
    experiments: experiments
      .slice(0, LISTED)
      .map(({ id, state, attempts }) => ({ session_id: id, status: state, attempts: attempts.length })),
    promotions: promotions
      .filter(({ project, sandbox, experiment }) => isOpened(parts, project) || seen.has(sandbox) || open.has(experiment ?? ""))
      .slice(0, LISTED)
      .map(({ id, state, project, plan }) => ({ promotion: id, status: state, project, files: plan?.files ?? 0 })),
    questions: approvals
      .filter(({ sandbox, project }) => isOpened(parts, project) || seen.has(sandbox))
      .slice(0, LISTED)
      .map(({ id, kind, target }) => ({ id, kind, about: oneLine(target), answer: `the person types: viv approve ${id}` })),
  });
}

/** Runs and experiments that this client may look at, the newest first. */
export async function openWork(client: Client, parts: Pick<McpParts, "projects">): Promise<{ runs: Run[]; experiments: Experiment[] }> {
  const [{ runs }, { experiments }] = await Promise.all([client.call("listRuns", {}), client.call("listExperiments", {})]);
  const open = experiments.filter((one) => isOpened(parts, one.project) || isOurs(one));
  const ids = new Set<string | null>(open.map(({ id }) => id));
  return { runs: runs.filter(({ project, experiment }) => isOpened(parts, project) || ids.has(experiment)), experiments: open };
}

function oneLine(text: string): string {
  return clean(text.slice(0, 100).replaceAll(/\s+/g, " "));
}
