import { z } from "zod";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

const LENGTH = 26;
/** Many ids at once: to ask for random bytes costs more than to have them. */
const random = { bytes: new Uint8Array(64 * LENGTH), used: 64 * LENGTH };

/** 130 random bits as 26 characters that survive being read aloud. */
function randomText(): string {
  const { bytes } = random;
  if (random.used === bytes.length) {
    crypto.getRandomValues(bytes);
    random.used = 0;
  }
  let text = "";
  for (const end = random.used + LENGTH; random.used < end; random.used += 1) text += ALPHABET[(bytes[random.used] ?? 0) & 31];
  return text;
}

const PREFIXES = {
  sandbox: "sbx",
  command: "cmd",
  snapshot: "snp",
  base: "bas",
  project: "prj",
  experiment: "exp",
  promotion: "prm",
  approval: "apv",
  message: "msg",
  effect: "eff",
  run: "run",
  task: "tsk",
  session: "ses",
  preview: "prv",
  subscription: "sub",
  automation: "aut",
  firing: "fir",
} as const;
type IdKind = keyof typeof PREFIXES;

export function newId(kind: IdKind): string {
  return `${PREFIXES[kind]}${randomText()}`;
}

/** Whether a name on the disk may be an id of this kind. What bears another name was not made by this program. */
export function hasIdPrefix(kind: IdKind, name: string): boolean {
  return name.startsWith(PREFIXES[kind]);
}

const pattern = (kind: IdKind): RegExp => new RegExp(`^${PREFIXES[kind]}[${ALPHABET}]{${LENGTH}}$`);

const SANDBOX_ID = pattern("sandbox");

export function isSandboxId(text: string): boolean {
  return SANDBOX_ID.test(text);
}

export const SandboxId = z.string().regex(SANDBOX_ID, "not the id of a sandbox, as `viv ls --json` shows it").describe("Id of a sandbox.");
export const CommandId = z.string().regex(pattern("command"), "not the id of a command, as `viv ps` shows it").describe("Id of a command.");
export const SnapshotId = z
  .string()
  .regex(pattern("snapshot"), "not the id of a snapshot, as `viv snapshots` shows it")
  .describe("Id of a snapshot.");
export const ExperimentId = z
  .string()
  .regex(pattern("experiment"), "not the id of an experiment, as `viv experiments` shows it")
  .describe("Id of an experiment.");
export const PromotionId = z
  .string()
  .regex(pattern("promotion"), "not the id of a promotion, as `viv promotions` shows it")
  .describe("Id of a promotion.");
export const ApprovalId = z
  .string()
  .regex(pattern("approval"), "not the id of a question, as `viv approvals` shows it")
  .describe("Id of a question for a person.");
export const QuestionId = z
  .union([ApprovalId, PromotionId], "not the id of a question, as `viv approvals` shows it")
  .describe("Id of a question for a person, or of a promotion that waits for one.");
export const RunId = z.string().regex(pattern("run"), "not the id of a run, as `viv tasks` shows it").describe("Id of a run.");
export const SessionId = z
  .string()
  .regex(pattern("session"), "not the id of a session, as `viv open --sessions` shows it")
  .describe("Id of a session of the dashboard.");
export const SubscriptionId = z
  .string()
  .regex(pattern("subscription"), "not the id of a browser, as `viv notify` shows it")
  .describe("Id of a browser that gets notifications.");
export const TaskId = z
  .string()
  .regex(pattern("task"), "not the id of a task of the backlog, as `viv tasks` shows it")
  .describe("Id of a task of the backlog.");
export const AutomationId = z
  .string()
  .regex(pattern("automation"), "not the id of an automation, as `viv automation ls --json` shows it")
  .describe("Id of an automation.");
export const FiringId = z
  .string()
  .regex(pattern("firing"), "not the id of a firing, as `viv automation history` shows it")
  .describe("Id of a firing.");
export const MessageId = z.string().regex(pattern("message"), "not the id of a message").describe("Id of a message.");
export const Name = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "a name is 1 to 63 lower-case letters, digits and inner hyphens")
  .describe("A name: lower-case letters, digits and hyphens.");
/** How a caller refers to a sandbox. */
export const SandboxRef = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,62})$/, "not a sandbox id or name")
  .describe("Id or name of a sandbox.");
export const SnapshotRef = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,62})$/, "not a snapshot id or name")
  .describe("Id or name of a snapshot.");
/** How a caller refers to an automation. */
export const AutomationRef = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,62})$/, "not the id or name of an automation")
  .describe("Id or name of an automation.");
