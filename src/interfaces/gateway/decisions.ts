/** What agents report of themselves. A report is accepted once it is durable, and waits for nothing else. */
import type { Audit } from "../../rules/audit/audit.ts";
import { decisionEntry } from "../../rules/audit/decision.ts";
import { withTimeout } from "../../base/host/with-timeout.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Answer, Call } from "./call.ts";

export class Decisions {
  readonly #audit: Audit;

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  async report({ row, input }: Call<"reportDecision">): Answer<"reportDecision"> {
    const recording = this.#audit.record(decisionEntry(row, input));
    recording.catch(() => undefined);
    try {
      const { sequence, at } = await withTimeout(recording, LIMITS.decisionMs, "The record");
      return { body: { ok: true, sequence, at } };
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "timeout") throw error;
      throw new VivError("audit_unavailable", "The report is not recorded yet, and may never be.", {
        remedy: "Go on; report it again later.",
      });
    }
  }

  /** Its own alone: what people and rules decided about it is theirs. */
  async list({ row, input: { after, limit } }: Call<"listDecisions">): Answer<"listDecisions"> {
    const page = await this.#audit.list({ sandbox: row.id, after, limit });
    const records = page.filter(({ actor }) => actor.kind === "agent");
    return { body: { records, next: page.at(-1)?.sequence ?? after, more: page.length === limit } };
  }
}
