/** The policy's say in the proxy. What it denies is refused; what it asks about waits for a person, and a yes is used once. */
import type { Approvals, Question as Asking } from "../approvals/approvals.ts";
import { describe } from "../host/log.ts";
import type { Judge, Question } from "../network/gate.ts";
import { shownHost } from "../network/host.ts";
import { deny, isNamed, type Allowed, type Denied, type Ruling } from "../network/rules.ts";
import type { Session } from "../network/session.ts";
import { LIMITS } from "../schema/limits.ts";
import type { SandboxRow, Store } from "../store/store.ts";
import { HostPolicies } from "./host-policies.ts";

export class HostJudge implements Judge {
  readonly #store: Store;
  readonly #policies: HostPolicies;
  readonly #holdMs: number;
  readonly #reach: (point: string) => void;
  /** There once the server has it; until then nothing that is asked about goes out. */
  approvals: Approvals | undefined;

  constructor(store: Store, options: { readonly holdMs?: number; readonly reach?: (point: string) => void } = {}) {
    this.#store = store;
    this.#policies = new HostPolicies(store);
    this.#holdMs = options.holdMs ?? LIMITS.effectHoldMs;
    this.#reach = options.reach ?? (() => undefined);
  }

  async judge(session: Session, question: Question, ruling: Allowed, signal?: AbortSignal): Promise<Ruling | undefined> {
    try {
      return await this.#judged(session, question, ruling, signal);
    } catch (error) {
      return deny("policy", `The policy can't be asked: ${describe(error)}`, "What can't be judged is refused; try again.");
    }
  }

  async standing(session: Session): Promise<(host: string, port: number, ruling: Allowed) => boolean> {
    const row = await this.#row(session);
    const policy = await this.#policies.of(row);
    const always = new Set((await this.approvals?.rules(row.project))?.map((rule) => rule.always));
    return (host, port, ruling) => {
      const { verdict } = policy(host, isNamed(ruling));
      return verdict === "ask" ? always.has(ruleFor(host)) || session.approved.has(placeOf(host, port)) : verdict === "allow";
    };
  }

  async #row({ sandbox }: Session): Promise<SandboxRow> {
    const row = await this.#store.sandbox(sandbox);
    if (row === undefined) throw new Error("the sandbox is not known");
    return row;
  }

  async #judged(session: Session, question: Question, ruling: Allowed, signal: AbortSignal | undefined): Promise<Ruling | undefined> {
    const row = await this.#row(session);
    const { host, port } = question;
    const { verdict, rule, reason } = (await this.#policies.of(row))(host, isNamed(ruling));
    if (verdict === "allow") return undefined;
    if (verdict === "deny") return deny("policy", reason, "Go on without it, or ask for another rule of the policy.", rule);
    const asking: Asking = {
      sandbox: row.id,
      sandboxName: row.name,
      project: row.project,
      kind: "host",
      target: placeOf(host, port),
      rule,
      reason,
      always: ruleFor(host),
      action: { kind: "host", host },
    };
    const answered = await this.#ask(asking, signal);
    if (typeof answered !== "string") return answered;
    session.approved.add(asking.target);
    return { ...ruling, approval: answered };
  }

  /** The question that was answered with yes, nothing where a person has said yes for always, or the refusal. */
  async #ask(asking: Asking, signal: AbortSignal | undefined): Promise<string | Denied | undefined> {
    const { approvals } = this;
    if (approvals === undefined) return deny("host_held", "Nobody can be asked now.", "Try again in a moment.");
    const patience = AbortSignal.any([AbortSignal.timeout(this.#holdMs), ...(signal === undefined ? [] : [signal])]);
    for (;;) {
      if ((await approvals.rules(asking.project)).some(({ always }) => always === asking.always)) return undefined;
      const waiting = (await approvals.list(false)).filter(({ sandbox }) => sandbox === asking.sandbox);
      if (waiting.length >= LIMITS.waitingQuestions && !waiting.some(({ target }) => target === asking.target))
        return deny("host_held", `${waiting.length} questions of this sandbox wait already.`, "Wait until some are answered.");
      const asked = await approvals.ask(asking);
      this.#reach("network.asked");
      const { state } = await approvals.wait(asked.id, patience);
      // Nobody is there to use a yes.
      if (signal?.aborted !== true && (await approvals.use(asking))) return asked.id;
      if (state === "denied" || state === "expired")
        return deny("policy", `A person was asked (${asked.id}), and the answer is no.`, "Go on without it.", asking.rule ?? undefined);
      if (patience.aborted)
        return deny(
          "host_held",
          `${asking.target} waits for a person: ${asked.id}.`,
          `Ask for \`viv approve ${asked.id}\`, then try again.`,
        );
      // Another connection has used the yes: this one asks for its own.
    }
  }
}

function placeOf(host: string, port: number): string {
  return `${shownHost(host)}:${port}`;
}

/** The narrow rule that `always` adds. */
function ruleFor(host: string): string {
  return `host: ${host}`;
}
