/** Questions that a sandbox puts to a person. It can ask and look; there is no way to answer from inside. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import type { Answer, Call } from "./call.ts";

export class Questions {
  readonly #approvals: Approvals;
  readonly #runs: Pick<RunGateway, "personAsked">;

  constructor(approvals: Approvals, runs: Pick<RunGateway, "personAsked">) {
    this.#approvals = approvals;
    this.#runs = runs;
  }

  async ask({ row, input: { kind, target, reason } }: Call<"askPerson">): Answer<"askPerson"> {
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
    return { body: approval };
  }

  async look({ row, path, input: { wait }, signal }: Call<"readQuestion">): Answer<"readQuestion"> {
    const id = path.approval;
    const asked = await this.#approvals.inspect(id);
    if (asked.sandbox !== row.id) throw new VivError("not_found", `There is no question ${id}.`, { remedy: "Ask it first." });
    if (wait === 0 || asked.state !== "waiting") return { body: asked };
    const patience = AbortSignal.any([signal, AbortSignal.timeout(wait * 1000)]);
    this.#runs.personAsked(row.id, { until: asked.deadline, text: asked.target });
    try {
      return { body: await this.#approvals.wait(id, patience) };
    } finally {
      this.#runs.personAsked(row.id, null);
    }
  }
}
