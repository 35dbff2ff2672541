/** Records of who decided what: each holds the hash of the one before, so that none can be changed or taken away unseen. */
import { z } from "zod";
import { contract, count, Done, flag } from "./contract.ts";
import { SandboxRef } from "./ids.ts";
import { ROUTES } from "./routes.ts";

export const AuditLabel = z
  .enum(["AUTONOMOUS", "AUTONOMOUS (whitelisted)", "APPROVED", "DENIED", "RECORDED"])
  .describe(
    "AUTONOMOUS was done without asking, whitelisted by a rule; APPROVED by a person; RECORDED is what a person did, or what needs no decision.",
  );
export type AuditLabel = z.infer<typeof AuditLabel>;

export const AuditActor = z
  .object({
    kind: z.enum(["person", "agent", "policy", "guardian", "server"]),
    name: z.string().max(256).describe("Id or name; of an agent, its sandbox."),
  })
  .describe("Who acted, by the channel it came through, never by what it claims.");

/** A caller that reaches the server's socket, or has its token, counts as the person who owns the server. */
export const OWNER: z.infer<typeof AuditActor> = { kind: "person", name: "owner" };

export const AuditEntry = z.object({
  actor: AuditActor,
  action: z.string().max(128).describe("What was done, such as promotion.apply or bash."),
  target: z.string().max(4096).describe("What it was done to: a path, a command, a host, a hash."),
  arguments: z.json().describe("Details, without what looks secret."),
  label: AuditLabel,
  rule: z.string().max(1024).nullable().describe("The rule that decided."),
  reason: z.string().max(4096).nullable(),
  sandbox: z.string().nullable().describe("Id of the sandbox."),
  snapshot: z.string().nullable().describe("Id of the snapshot it was done to."),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

export const AuditRecord = AuditEntry.extend({
  sequence: z.number().int().describe("Place in the chain, from 1."),
  at: z.string().describe("ISO time, as the clock said."),
  clockBack: z.boolean().describe("Whether the clock had been set back since the record before."),
  previous: z.string().describe("Hash of the record before."),
  hash: z.string().describe("Of this record and the hash before it."),
})
  .describe("Something that was decided.")
  .meta({ id: "AuditRecord" });
export type AuditRecord = z.infer<typeof AuditRecord>;

export const AuditReport = z
  .object({
    whole: z.boolean(),
    records: z.number().int(),
    newest: z.string().describe("Hash of the newest record: note it elsewhere, and any later change to an earlier record is found."),
    problem: z.string().nullable().describe("What is wrong, with the first bad place."),
    firstBad: z.number().int().nullable(),
  })
  .describe("Whether the chain is whole.")
  .meta({ id: "AuditReport" });
export type AuditReport = z.infer<typeof AuditReport>;

/** What an agent reports of itself. Further fields are kept as they are. */
export const Decision = z.looseObject({
  tool: z.string().max(128).describe("What it used."),
  args: z.json().optional().describe("With what."),
  timestamp: z.string().max(64).optional().describe("When, by its own clock; the record has the server's."),
});

export const AUDIT_CONTRACTS = {
  listAudit: contract(
    ROUTES.listAudit,
    "Who decided what, the oldest first",
    z.strictObject({
      sandbox: SandboxRef.optional(),
      after: count(0).default(0).describe("Sequence number."),
      since: z.iso.datetime({ offset: true }).optional().describe("Only those of this time and later."),
      action: z
        .string()
        .min(1)
        .max(128)
        .optional()
        .describe("Only records of this action, such as network.request; network.* are all actions that begin with `network.`."),
      newest: flag.default(false).describe("The newest of them instead of the oldest; in order all the same."),
      limit: count(1, 1000).default(200).describe("At most."),
    }),
    z.object({ records: z.array(AuditRecord) }),
  ),
  verifyAudit: contract(
    ROUTES.verifyAudit,
    "Whether the chain of records is whole",
    z.strictObject({
      noted: z
        .string()
        .regex(/^[1-9]\d{0,15}:[0-9a-f]{64}$/, "a note is SEQUENCE:HASH")
        .optional()
        .describe("A record as it was noted elsewhere: its sequence number, a colon, its hash."),
    }),
    AuditReport,
  ),
  reportDecision: contract(
    ROUTES.reportDecision,
    "Report a decision of an agent; never blocks it",
    z.strictObject({ sandbox: SandboxRef, decision: Decision }),
    Done,
    201,
  ),
  listDecisions: contract(
    ROUTES.listDecisions,
    "Decisions about a sandbox",
    z.strictObject({ sandbox: SandboxRef, after: count(0).default(0), limit: count(1, 1000).default(200) }),
    z.object({ records: z.array(AuditRecord) }),
  ),
} as const;
