/**
 * Decides actions of agents. The server records a verdict before it answers the agent, so an action that can't be recorded is refused.
 * Where the policy says ask, a person gets a question. The agent tries again later, and an approval lets the action through once.
 */
import type { Approvals, Question } from "../approvals/approvals.ts";
import type { Audit } from "../audit/audit.ts";
import { alwaysRule, canonicalAction, shownAction } from "../../base/policy/always.ts";
import { decide, type EffectivePolicy } from "../../base/policy/policy.ts";
import type { ActionAnswer, ActionInput } from "../../base/schema/action.ts";
import type { Approval } from "../../base/schema/approval.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PolicyAction, PolicyDecision } from "../../base/schema/policy.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { policyOf } from "./policy-of.ts";
import { actionEntry } from "./records.ts";

export interface ActionParts {
  readonly store: Store;
  readonly audit: Audit;
  readonly approvals: Approvals;
  /** Model APIs that sandboxes reach, and what may be spent on them. */
  readonly user: Pick<UserConfig, "models" | "budgets">;
  readonly reach: (point: string) => void;
}

export class Actions {
  readonly #parts: ActionParts;

  constructor(parts: ActionParts) {
    this.#parts = parts;
  }

  async policy(row: SandboxRow): Promise<EffectivePolicy> {
    return policyOf(this.#parts.store, this.#parts.approvals, row);
  }

  async decide(row: SandboxRow, input: ActionInput, signal: AbortSignal): Promise<ActionAnswer> {
    const answer = await this.#once(row, input);
    if (answer.verdict !== "ask" || answer.approval === null || input.wait === 0) return answer;
    const { id } = answer.approval;
    const waited = await this.#parts.approvals.wait(id, AbortSignal.any([signal, AbortSignal.timeout(input.wait * 1000)]));
    // The caller is gone and would not get the answer: the approval stays for the next try.
    if (signal.aborted) throw new VivError("cancelled", "The caller that asked is gone.");
    if (waited.state === "waiting") return answer;
    const now = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
    if (waited.state !== "expired") return this.#once(now, input);
    return this.#settle(
      now,
      input.action,
      denied(answer, `deadline of ${id}`, "No person answered by the deadline. Try the action again to ask anew."),
    );
  }

  /** For an action that an agent did without asking. It is recorded; what a person had to be asked about is a denial that came too late. */
  async afterwards(row: SandboxRow, action: PolicyAction): Promise<PolicyDecision> {
    const decision = await this.#judge(row, action);
    const late = decision.verdict === "allow" ? decision : denied(decision, decision.rule, `It was done unasked. ${decision.reason}`);
    return this.#settle(row, action, late);
  }

  /** For what the server itself does on behalf of an agent, and records: why it must not be done now, or nothing. */
  async refusal(row: SandboxRow, action: PolicyAction): Promise<ActionAnswer | undefined> {
    if ((await this.#judge(row, action)).verdict === "allow") return undefined;
    const answer = await this.#once(row, { action, wait: 0 });
    return answer.verdict === "allow" ? undefined : answer;
  }

  /** Without waiting: what the policy, and the answers there are, say now. */
  async #once(row: SandboxRow, { action, reason }: ActionInput): Promise<ActionAnswer> {
    const decision = await this.#judge(row, action);
    if (decision.verdict !== "ask") return this.#settle(row, action, decision);
    const question = questionOf(row, action, decision, reason);
    const { approvals } = this.#parts;
    const approved: PolicyDecision = { ...decision, verdict: "allow", reason: "A person approved it, this once." };
    const used = await approvals.use(question, ({ id }) => actionEntry(row, action, approved, { label: "APPROVED", approval: id }));
    if (used) return { ...approved, approval: null };
    const denial = await approvals.denial(question);
    if (denial !== undefined)
      return this.#settle(row, action, denied(decision, `answer to ${denial.id}`, "A person was asked, and said no."));
    const obstacle = await this.#obstacle(row, question);
    if (obstacle !== undefined) return this.#settle(row, action, denied(decision, "questions", obstacle));
    const asked = await approvals.ask(question, ({ id }) => actionEntry(row, action, decision, { approval: id }));
    return { ...decision, approval: shownQuestion(asked) };
  }

  /** An action that can't be judged is denied. */
  async #judge(row: SandboxRow, action: PolicyAction): Promise<PolicyDecision> {
    try {
      const policy = await this.policy(row);
      const decision = decide(policy, action);
      const missing = policy.level === 3 ? await this.#missing(row) : undefined;
      return missing === undefined ? decision : denied(decision, "level 3", missing);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "config_invalid") throw error;
      return denied({ parts: [] }, "vivarium.json", `Nothing is allowed while the config can't be read: ${error.message}`);
    }
  }

  /** What full autonomy must have and this sandbox has not. */
  async #missing({ id, idleMs, labels }: SandboxRow): Promise<string | undefined> {
    const { models, budgets } = this.#parts.user;
    // What an experiment runs has a time in which it must end.
    if (idleMs === 0 && labels["experiment"] === undefined)
      return "Level 3 runs only with a watchdog, and this sandbox has no idle time after which it ends.";
    const isBounded = Object.keys(budgets).length > 0 || (await this.#parts.store.runs.find({ sandbox: id }))?.budget != null;
    if (Object.keys(models).length > 0 && !isBounded)
      return "Level 3 runs only with a budget, and the user config has models without `budgets`.";
    return undefined;
  }

  /** Why a person is not asked although the policy says so. */
  async #obstacle(row: SandboxRow, question: Question): Promise<string | undefined> {
    if (question.target.length > LIMITS.questionCharacters)
      return `It is longer than a person reads (${LIMITS.questionCharacters} characters); write a script and run that.`;
    const isSame = ({ action }: Approval): boolean => action !== undefined && canonicalAction(action) === question.exact;
    const waiting = await this.#parts.approvals.tooMany(row.id, isSame);
    return waiting === undefined ? undefined : `${waiting} questions of this sandbox wait already.`;
  }

  async #settle(row: SandboxRow, action: PolicyAction, decision: PolicyDecision): Promise<ActionAnswer> {
    await this.#parts.audit.record(actionEntry(row, action, decision));
    this.#parts.reach("action.recorded");
    return { ...decision, approval: null };
  }
}

function denied({ parts }: Pick<PolicyDecision, "parts">, rule: string, reason: string): PolicyDecision {
  return { verdict: "deny", rule, reason, parts };
}

/** The answer is bound to the exact action. A question in the sandbox's own words never counts as an approval of an action. */
function questionOf(row: SandboxRow, action: PolicyAction, decision: PolicyDecision, reason: string | undefined): Question {
  return {
    sandbox: row.id,
    sandboxName: row.name,
    project: row.project,
    kind: action.kind,
    target: shownAction(action),
    exact: canonicalAction(action),
    rule: decision.rule,
    reason: reason === undefined ? decision.reason : `${decision.reason} The sandbox says: ${reason}`,
    always: alwaysRule(action),
    action,
  };
}

function shownQuestion({ id, state, deadline, always }: Approval): ActionAnswer["approval"] {
  return { id, state, deadline, always };
}
