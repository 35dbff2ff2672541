/** Use cases of the audit trail. */
import type { Audit } from "../../rules/audit/audit.ts";
import { decisionEntry } from "../../rules/audit/decision.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Handlers } from "./operations.ts";
import { subjectId } from "./subjects.ts";

type Own = "listAudit" | "verifyAudit" | "reportDecision" | "listDecisions";

export function auditHandlers(audit: Audit, sandboxes: Sandboxes): Pick<Handlers, Own> {
  return {
    listAudit: async ({ sandbox, after, since, newest, limit, action }) => {
      const id = sandbox === undefined ? undefined : await subjectId(sandboxes, sandbox);
      const from = since === undefined ? 0 : await audit.placeBefore(new Date(since).toISOString(), id);
      return { records: await audit.list({ after: Math.max(after, from), limit, newest, action, sandbox: id }) };
    },
    verifyAudit: ({ noted }) => {
      const [sequence, hash = ""] = noted?.split(":") ?? [];
      return audit.verify(sequence === undefined ? undefined : { sequence: Number(sequence), hash });
    },
    listDecisions: async ({ sandbox, after, limit }) => ({
      records: await audit.list({ sandbox: await subjectId(sandboxes, sandbox), after, limit }),
    }),
    reportDecision: async ({ sandbox, decision }) => {
      await audit.record(decisionEntry(await sandboxes.find(sandbox), decision));
      return { ok: true };
    },
  };
}
