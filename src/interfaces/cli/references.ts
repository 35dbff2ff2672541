/** What a person types for a command, an experiment or a promotion: its id, or enough of its beginning. */
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

const ID_LENGTH = 29;
const UUID_LENGTH = 36;

const KINDS = {
  experiment: { prefix: "exp", list: "viv experiments --all" },
  promotion: { prefix: "prm", list: "viv promotions --all" },
  run: { prefix: "run", list: "viv tasks --all" },
  task: { prefix: "tsk", list: "viv tasks" },
  approval: { prefix: "apv", list: "viv approvals --all" },
  rule: { prefix: "apv", list: "viv policy rules" },
  firing: { prefix: "fir", list: "viv automation history" },
  job: { prefix: "", list: "viv jobs", length: UUID_LENGTH },
} as const;
type Kind = keyof typeof KINDS;

const SHORT_LENGTH = 9;

/** What is shown of an id; enough to type. */
export function shortId(id: string): string {
  return id.slice(0, SHORT_LENGTH);
}

export async function findId(client: Client, kind: Kind, text: string): Promise<string> {
  return findBeginning({ kind, ...KINDS[kind] }, text, () => idsOf(client, kind));
}

/** What waits for an answer: a question, or a promotion. */
export async function findQuestion(client: Client, text: string): Promise<string> {
  return findId(client, text.startsWith(KINDS.promotion.prefix) ? "promotion" : "approval", text);
}

/** A command of a sandbox, running or ended. */
export async function findCommand(client: Client, sandbox: string, text: string): Promise<string> {
  return findBeginning({ kind: "command", prefix: "cmd", list: `viv ps --all ${sandbox}` }, text, async () =>
    (await client.call("listCommands", { sandbox, all: true })).commands.map(({ id }) => id),
  );
}

interface Meant {
  readonly kind: string;
  readonly prefix: string;
  /** The command that lists the existing ones. */
  readonly list: string;
  /** Characters of a whole id. */
  readonly length?: number;
}

async function findBeginning(
  { kind, prefix, list, length = ID_LENGTH }: Meant,
  text: string,
  idsThere: () => Promise<readonly string[]>,
): Promise<string> {
  const typed = text.startsWith(prefix) ? text : `${prefix}${text}`;
  if (typed.length === length) return typed;
  const found = (await idsThere()).filter((id) => id.startsWith(typed));
  const [first] = found;
  const remedy = `Look at \`${list}\` for those that exist.`;
  if (first === undefined) throw new VivError("not_found", `There is no ${kind} ${JSON.stringify(text)}.`, { remedy });
  if (found.length > 1)
    throw new VivError(
      "usage",
      `${JSON.stringify(text)} is the beginning of ${found.length} ids: ${found.slice(0, 3).join(", ")}${found.length > 3 ? ", ..." : ""}.`,
      {
        remedy: "Type more of it.",
      },
    );
  return first;
}

async function idsOf(client: Client, kind: Kind): Promise<string[]> {
  if (kind === "experiment") return (await client.call("listExperiments", { all: true })).experiments.map(({ id }) => id);
  if (kind === "approval") return (await client.call("listApprovals", { all: true })).approvals.map(({ id }) => id);
  if (kind === "run") return (await client.call("listRuns", { all: true })).runs.map(({ id }) => id);
  if (kind === "firing") return (await client.call("listFirings", { limit: LIMITS.listedFirings })).firings.map(({ id }) => id);
  if (kind === "job") return (await client.call("listJobs", { limit: LIMITS.keptJobs })).jobs.map(({ id }) => id);
  if (kind === "task") return (await client.call("listBacklog", {})).tasks.map(({ id }) => id);
  if (kind === "rule") return (await client.call("listRules", {})).rules.map(({ id }) => id);
  return (await client.call("listPromotions", { all: true })).promotions.map(({ id }) => id);
}

/** What a task begins from: a run by the beginning of its id, else the name or id of a sandbox or a snapshot. */
export async function findStart(client: Client, text: string): Promise<string> {
  if (!text.startsWith(KINDS.run.prefix) || text.length === ID_LENGTH) return text;
  const { sandboxes } = await client.call("listSandboxes", {});
  if (sandboxes.some(({ name }) => name === text)) return text;
  const found = (await idsOf(client, "run")).some((id) => id.startsWith(text));
  return found ? findId(client, "run", text) : text;
}

export type Source = { readonly kind: Kind | "sandbox"; readonly id: string };

/** A sandbox has its name first: one may be called `exp-2`. */
export async function findSource(client: Client, text: string): Promise<Source> {
  const kind = (["experiment", "promotion"] as const).find((each) => text.startsWith(KINDS[each].prefix));
  if (kind === undefined) return { kind: "sandbox", id: text };
  if (text.length !== ID_LENGTH) {
    const { sandboxes } = await client.call("listSandboxes", {});
    if (sandboxes.some(({ name }) => name === text)) return { kind: "sandbox", id: text };
  }
  return { kind, id: await findId(client, kind, text) };
}
