/** What a session_id stands for. */
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { CommandId, ExperimentId, RunId } from "../../base/schema/ids.ts";
import type { Experiment } from "../../base/schema/experiment.ts";
import type { Run } from "../../base/schema/run.ts";
import type { Sandbox } from "../../base/schema/sandbox.ts";
import type { Call } from "./call.ts";
import { isOpened, notOpened } from "./projects.ts";

export type Session =
  | { readonly kind: "run"; readonly run: Run }
  | { readonly kind: "experiment"; readonly experiment: Experiment }
  | { readonly kind: "command"; readonly sandbox: string; readonly command: string }
  | { readonly kind: "code"; readonly sandbox: string; readonly execution: string }
  | { readonly kind: "sandbox"; readonly sandbox: string };

/** Marks what was made through these tools: only that may be changed or removed by them. */
export const MADE_HERE = "mcp";
/** Label that the server gives to sandboxes of an experiment. */
export const EXPERIMENT_LABEL = "experiment";

/** What the tools look at: a session of a chat, or one of a project that the person opened. */
export type Reader = Pick<Call, "client" | "parts">;

/** What an id stands for. One that is neither a chat's nor of an opened project is refused. */
export async function openSession({ client, parts }: Reader, id: string): Promise<Session> {
  const session = await findSession(client, id);
  if (session.kind === "run" || session.kind === "experiment") {
    const { project } = session.kind === "run" ? session.run : session.experiment;
    if (!isOpened(parts, project) && !(await isOurWork(client, session))) throw notOpened(id);
  } else {
    const sandbox = await client.call("findSandbox", { sandbox: session.sandbox });
    if (!isOpened(parts, sandbox.project) && !(await isOurSandbox(client, sandbox))) throw notOpened(id);
  }
  return session;
}

async function isOurWork(client: Client, session: Extract<Session, { kind: "run" | "experiment" }>): Promise<boolean> {
  if (session.kind === "experiment") return isOurs(session.experiment);
  const { experiment } = session.run;
  return experiment !== null && isOurs(await client.call("inspectExperiment", { experiment }));
}

async function findSession(client: Client, id: string): Promise<Session> {
  if (RunId.safeParse(id).success) return { kind: "run", run: await client.call("inspectRun", { run: id }) };
  if (ExperimentId.safeParse(id).success)
    return { kind: "experiment", experiment: await client.call("inspectExperiment", { experiment: id }) };
  const [sandbox = "", part] = id.split("/");
  if (part !== undefined && CommandId.safeParse(part).success) return { kind: "command", sandbox, command: part };
  if (part !== undefined) return { kind: "code", sandbox, execution: part };
  const { id: found } = await client.call("findSandbox", { sandbox });
  return { kind: "sandbox", sandbox: found };
}

/** The sandbox that holds the files: of an experiment, its winner's, or the only attempt's. */
export async function sandboxOf(reader: Reader, id: string): Promise<string> {
  const session = await openSession(reader, id);
  if ("sandbox" in session) return session.sandbox;
  const sandbox = session.kind === "run" ? session.run.sandbox : attemptOf(session.experiment)?.sandbox;
  if (sandbox !== null && sandbox !== undefined) return sandbox;
  throw new VivError("not_running", session.kind === "run" ? "The task has no sandbox yet." : "No attempt of it has won.", {
    remedy: session.kind === "run" ? "Call wait." : "Name the sandbox of one attempt, as get_sandbox_status shows it.",
  });
}

/** A sandbox of ours that runs: the one that is meant, started again where it has ended, or a new one. */
export async function ownSandbox({ client, parts }: Reader, id: string | undefined): Promise<string> {
  if (id === undefined)
    return (await client.call("createSandbox", { empty: true, labels: { [MADE_HERE]: "workspace" }, env: { ...parts.env } })).id;
  const sandbox = await sandboxOf({ client, parts }, id);
  await requireOurs(client, sandbox);
  await startAgain(client, sandbox);
  return sandbox;
}

/** Files of a sandbox that has ended are there once it is started again; one that a chat did not make is left as it is. */
export async function startAgain(client: Client, sandbox: string): Promise<void> {
  const { state } = await client.call("findSandbox", { sandbox });
  if (state !== "completed") return;
  await requireOurs(client, sandbox);
  await client.call("startSandbox", { sandbox });
}

function attemptOf({ attempts, winner }: Experiment): Experiment["attempts"][number] | undefined {
  return winner === null ? (attempts.length === 1 ? attempts[0] : undefined) : attempts.find(({ index }) => index === winner);
}

export function isOurs({ attempts }: Pick<Experiment, "attempts">): boolean {
  return attempts.every(({ name }) => name === MADE_HERE || name.startsWith(`${MADE_HERE}-`));
}

/** Refuses a sandbox that a person or another program made. */
export async function requireOurs(client: Client, sandbox: string): Promise<void> {
  const found = await client.call("findSandbox", { sandbox });
  if (!(await isOurSandbox(client, found))) throw notOurs(`Sandbox ${found.name}`);
}

async function isOurSandbox(client: Client, { labels }: Pick<Sandbox, "labels">): Promise<boolean> {
  if (labels[MADE_HERE] !== undefined) return true;
  const experiment = labels[EXPERIMENT_LABEL];
  return experiment !== undefined && isOurs(await client.call("inspectExperiment", { experiment }));
}

export function notOurs(what: string): VivError {
  return new VivError("denied", `${what} was not made by these tools, so they leave it alone.`, {
    remedy: "Call clone for a sandbox of your own; the person can change or remove theirs with `viv`.",
  });
}

/** Address of a file as a resource. */
export function fileUri(session: string, path: string): string {
  return `viv://${session}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
}
