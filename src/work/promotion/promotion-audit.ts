/** Records promotions in the audit trail: before one begins to write, and when it ends. */
import type { Audit } from "../../rules/audit/audit.ts";
import { OWNER, type AuditLabel } from "../../base/schema/audit.ts";
import type { PromotionRow } from "../../base/store/rows.ts";

type Step = "promotion.begin" | "promotion.approve" | "promotion.end" | "promotion.undo";

export class PromotionAudit {
  readonly #audit: Audit;

  constructor(audit: Audit) {
    this.#audit = audit;
  }

  /** Resolves once it is durable; without that the caller must not go on. */
  async before(row: PromotionRow, step: Step, label: AuditLabel): Promise<void> {
    await this.#audit.record(entryOf(row, step, label));
  }

  /** Reports how a promotion ended; it has ended whether or not the record can be written. */
  after(row: PromotionRow): void {
    this.#audit.note(entryOf(row, "promotion.end", ["failed", "discarded"].includes(row.state) ? "DENIED" : "RECORDED"));
  }
}

function entryOf(row: PromotionRow, action: Step, label: AuditLabel): Parameters<Audit["record"]>[0] {
  const { id, kind, state, project, plan, stages, undoes, experiment, branch } = row;
  return {
    actor: OWNER,
    action,
    target: project,
    arguments: {
      promotion: id,
      kind,
      state,
      hash: plan?.hash ?? null,
      files: plan?.files ?? null,
      risks: plan?.risks.length ?? 0,
      stages: stages.map((stage) => `${stage.name} ${stage.state}`),
      undoes,
      experiment,
      branch: branch?.name ?? null,
      kept: [...(row.kept ?? [])],
    },
    label,
    rule: null,
    reason: row.reason,
    sandbox: row.sandbox,
    snapshot: row.snapshot,
  };
}
