/** Questions that a sandbox puts to a person. It can ask and look; there is no way to answer from inside. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Approval } from "../../base/schema/approval.ts";
import { VivError } from "../../base/schema/errors.ts";
import { QuestionInput, WaitQuery } from "../../base/schema/gateway.ts";
import type { Call } from "./routes.ts";
import { parse, type Reply } from "./http.ts";

export class Questions {
  readonly #approvals: Approvals;

  constructor(approvals: Approvals) {
    this.#approvals = approvals;
  }

  async ask({ row, body }: Call): Promise<Reply> {
    const { kind, target, reason } = parse(QuestionInput, body);
    const waiting = await this.#approvals.tooMany(row.id, (one) => one.kind === kind && one.target === target);
    if (waiting !== undefined)
      throw new VivError("no_capacity", `${waiting} questions of this sandbox wait already.`, {
        remedy: "Wait for an answer first.",
      });
    const approval = await this.#approvals.ask({
      sandbox: row.id,
      sandboxName: row.name,
      project: row.project,
      kind,
      target,
      rule: "asked by the sandbox itself",
      reason: `The sandbox says: ${reason}`,
      always: null,
    });
    return { status: 202, body: shown(approval) };
  }

  async look({ row, named, query, signal }: Call): Promise<Reply> {
    const { wait } = parse(WaitQuery, query);
    const id = named["approval"] ?? "";
    const asked = await this.#approvals.inspect(id);
    if (asked.sandbox !== row.id) throw new VivError("not_found", `There is no question ${id}.`, { remedy: "Ask it first." });
    const patience = AbortSignal.any([signal, AbortSignal.timeout(wait * 1000)]);
    return { status: 200, body: shown(wait > 0 ? await this.#approvals.wait(id, patience) : asked) };
  }
}

function shown({ id, state, kind, target, askedAt, deadline, answeredAt }: Approval): Partial<Approval> {
  return { id, state, kind, target, askedAt, deadline, answeredAt };
}
