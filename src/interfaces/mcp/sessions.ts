/** What a session_id stands for. */
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { CommandId, ExperimentId, RunId, SandboxId } from "../../base/schema/ids.ts";
import type { Experiment } from "../../base/schema/experiment.ts";
import type { Run } from "../../base/schema/run.ts";
import type { Call } from "./call.ts";

export type Session =
  | { readonly kind: "run"; readonly run: Run }
  | { readonly kind: "experiment"; readonly experiment: Experiment }
  | { readonly kind: "command"; readonly sandbox: string; readonly command: string }
  | { readonly kind: "code"; readonly sandbox: string; readonly execution: string }
  | { readonly kind: "sandbox"; readonly sandbox: string };

/** Marks what was made through these tools: only that may be changed or removed by them. */
export const MADE_HERE = "mcp";
/** Label that the server gives to sandboxes of an experiment. */
const EXPERIMENT_LABEL = "experiment";

export async function findSession(client: Client, id: string): Promise<Session> {
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
export async function sandboxOf(client: Client, id: string): Promise<string> {
  const session = await findSession(client, id);
  if ("sandbox" in session) return session.sandbox;
  const sandbox = session.kind === "run" ? session.run.sandbox : attemptOf(session.experiment)?.sandbox;
  if (sandbox !== null && sandbox !== undefined) return sandbox;
  throw new VivError("not_running", session.kind === "run" ? "The task has no sandbox yet." : "No attempt of it has won.", {
    remedy: session.kind === "run" ? "Call wait." : "Name the sandbox of one attempt, as get_sandbox_status shows it.",
  });
}

/** A sandbox of ours that runs: the one that is meant, started again where it has ended, or a new one. */
export async function ownSandbox({ client, parts }: Pick<Call, "client" | "parts">, id: string | undefined): Promise<string> {
  if (id === undefined)
    return (await client.call("createSandbox", { empty: true, labels: { [MADE_HERE]: "workspace" }, env: { ...parts.env } })).id;
  const sandbox = await sandboxOf(client, id);
  await requireOurs(client, sandbox);
  const { state } = await client.call("findSandbox", { sandbox });
  if (state === "completed") await client.call("startSandbox", { sandbox });
  return sandbox;
}

function attemptOf({ attempts, winner }: Experiment): Experiment["attempts"][number] | undefined {
  return winner === null ? (attempts.length === 1 ? attempts[0] : undefined) : attempts.find(({ index }) => index === winner);
}

export function isOurs({ attempts }: Pick<Experiment, "attempts">): boolean {
  return attempts.every(({ name }) => name === MADE_HERE || name.startsWith(`${MADE_HERE}-`));
}

/** Refuses a sandbox that a person or another program made. */
export async function requireOurs(client: Client, sandbox: string): Promise<void> {
  const { name, labels } = await client.call("findSandbox", { sandbox });
  if (labels[MADE_HERE] !== undefined) return;
  const experiment = labels[EXPERIMENT_LABEL];
  if (experiment !== undefined && SandboxId.safeParse(sandbox).success && isOurs(await client.call("inspectExperiment", { experiment })))
    return;
  throw notOurs(`Sandbox ${name}`);
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
