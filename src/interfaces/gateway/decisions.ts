/** What agents report of themselves. A report is accepted once it is durable, and waits for nothing else. */
import type { Audit } from "../../rules/audit/audit.ts";
import { decisionEntry } from "../../rules/audit/decision.ts";
import { withTimeout } from "../../base/host/with-timeout.ts";
import { Decision } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import { DecisionsQuery } from "../../base/schema/gateway.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Call } from "./routes.ts";
import { parse, type Reply } from "./http.ts";

export class Decisions {
  readonly #audit: Audit;

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  async report({ row, body }: Call): Promise<Reply> {
    const recording = this.#audit.record(decisionEntry(row, parse(Decision, body)));
    recording.catch(() => undefined);
    try {
      const { sequence, at } = await withTimeout(recording, LIMITS.decisionMs, "The record");
      return { status: 201, body: { ok: true, sequence, at } };
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "timeout") throw error;
      throw new VivError("audit_unavailable", "The report is not recorded yet, and may never be.", {
        remedy: "Go on; report it again later.",
      });
    }
  }

  /** Its own alone: what people and rules decided about it is theirs. */
  async list({ row, query }: Call): Promise<Reply> {
    const { after, limit } = parse(DecisionsQuery, query);
    const page = await this.#audit.list({ sandbox: row.id, after, limit });
    const records = page.filter(({ actor }) => actor.kind === "agent");
    return { status: 200, body: { records, next: page.at(-1)?.sequence ?? after, more: page.length === limit } };
  }
}
