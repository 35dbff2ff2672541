/** Names and ids that a server knows, for completion. */
import type { Client } from "../client/client.ts";
import type { Offer } from "./offers.ts";
import { findId } from "./references.ts";

type Known = NonNullable<Offer["known"]>;

export async function knownNames(client: Client, { what, before }: Known): Promise<string[]> {
  return NAMES[what](client, before[0] ?? "");
}

async function sandboxes(client: Client): Promise<string[]> {
  return (await client.call("listSandboxes", {})).sandboxes.map(({ name }) => name);
}

async function commands(client: Client, sandbox: string, all: boolean): Promise<string[]> {
  return (await client.call("listCommands", { sandbox, all })).commands.map(({ id }) => id);
}

async function waiting(client: Client): Promise<string[]> {
  const { promotions } = await client.call("listPromotions", {});
  return promotions.filter(({ state }) => state === "waiting").map(({ id }) => id);
}

/** By what is before it: `of` is the sandbox or the experiment that the line names. */
const NAMES: Readonly<Record<Known["what"], (client: Client, of: string) => Promise<string[]>>> = {
  sandbox: sandboxes,
  copy: async (client) => (await sandboxes(client)).map((name) => `${name}:`),
  command: (client, sandbox) => commands(client, sandbox, true),
  "running-command": (client, sandbox) => commands(client, sandbox, false),
  snapshot: async (client, sandbox) => (await client.call("listSnapshots", { sandbox })).snapshots.map(({ id, name }) => name ?? id),
  experiment: async (client) => (await client.call("listExperiments", {})).experiments.map(({ id }) => id),
  attempt: async (client, text) => {
    const experiment = await findId(client, "experiment", text);
    return (await client.call("inspectExperiment", { experiment })).attempts.map(({ name }) => name);
  },
  run: async (client) => (await client.call("listRuns", {})).runs.map(({ id }) => id),
  job: async (client) => (await client.call("listJobs", {})).jobs.map(({ id }) => id),
  automation: async (client) => (await client.call("listAutomations", {})).automations.map(({ name }) => name),
  undoable: async (client) => {
    const { promotions } = await client.call("listPromotions", {});
    return promotions
      .filter(({ kind, state, branch }) => kind === "promotion" && state === "applied" && branch === null)
      .map(({ id }) => id);
  },
  source: async (client) => {
    const { experiments } = await client.call("listExperiments", {});
    const won = experiments.filter(({ winner, promotion }) => winner !== null && promotion === null).map(({ id }) => id);
    return [...(await sandboxes(client)), ...won, ...(await waiting(client))];
  },
  question: async (client) => [...(await client.call("listApprovals", {})).approvals.map(({ id }) => id), ...(await waiting(client))],
  rule: async (client) => (await client.call("listRules", {})).rules.map(({ id }) => id),
  secret: async (client) => (await client.call("listSecrets", {})).secrets.map(({ name }) => name),
};
