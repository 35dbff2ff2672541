/** Asks the policy about hosts for the proxy. The proxy refuses a host that the policy denies. Where the policy says ask, the connection waits for a person, and an approval lets one connection through. */
import type { Approvals, SandboxQuestion as Asking } from "../approvals/approvals.ts";
import { askPerson } from "../approvals/asking.ts";
import { errorText } from "../../base/host/log.ts";
import type { Judge, Question } from "../network/gate.ts";
import { shownHost } from "../network/host.ts";
import { registryFile } from "../network/registries.ts";
import { deny, isNamed, type Allowed, type Denied, type Ruling } from "../network/rules.ts";
import type { Session } from "../network/session.ts";
import { alwaysRule, canonicalAction, shownAction } from "../../base/policy/always.ts";
import type { Judgement } from "../../base/policy/layer.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { HostPolicies, type HostPolicy } from "./host-policies.ts";

export interface HostJudgeParts {
  readonly store: Store;
  readonly approvals: Approvals;
  /** How long a connection waits for the answer of a person. */
  readonly holdMs?: number;
  readonly reach?: (point: string) => void;
  /** Reads the hosts anew that people opened. */
  readonly renew?: () => Promise<void>;
}

export class HostJudge implements Judge {
  readonly #store: Store;
  readonly #policies: HostPolicies;
  readonly #holdMs: number;
  readonly #reach: (point: string) => void;
  readonly #renew: () => Promise<void>;
  readonly #approvals: Approvals;

  constructor({ store, approvals, holdMs = LIMITS.effectHoldMs, reach = () => undefined, renew = async () => undefined }: HostJudgeParts) {
    this.#store = store;
    this.#approvals = approvals;
    this.#policies = new HostPolicies(store);
    this.#holdMs = holdMs;
    this.#reach = reach;
    this.#renew = renew;
  }

  async judge(session: Session, question: Question, ruling: Allowed, signal?: AbortSignal): Promise<Ruling | undefined> {
    try {
      return await this.#judged(session, question, ruling, signal);
    } catch (error) {
      return deny("policy", `The policy can't be asked: ${errorText(error)}`, "The connection is refused. Try again.");
    }
  }

  /** Registries that the settings of the machine name are worth a question. */
  async opens(session: Session, { host, port }: Question, signal: AbortSignal | undefined): Promise<"opened" | Denied | undefined> {
    const approvals = this.#approvals;
    const row = await this.#store.sandboxes.get(session.sandbox);
    const file = row === undefined ? undefined : await registryFile(row.project, row.home, host, port);
    if (row === undefined || file === undefined) return undefined;
    const asking = registryQuestion(row, { host, port }, file);
    const patience = AbortSignal.any([AbortSignal.timeout(this.#holdMs), ...(signal === undefined ? [] : [signal])]);
    for (;;) {
      if (isOpened(session, host, port)) return "opened";
      const asked = await askPerson(approvals, asking, { patience, signal });
      if (asked.answer === "again") continue;
      if (asked.answer === "too many")
        return deny("host_held", `${asked.waiting} questions of this sandbox wait already.`, "Wait until some are answered.");
      const { answer, approval } = asked;
      if (answer === "no") return refused(approval, asking);
      if (answer === "none yet")
        return deny(
          "host_held",
          `${asking.target} waits for a person: ${approval}.`,
          `Ask for \`viv approve ${approval}\`, then try again.`,
        );
      if ((await approvals.inspect(approval)).scope === "always") await this.#renew();
      else session.opened.push({ host, ports: [port], tcp: false });
    }
  }

  async lets(session: Session, host: string, ruling: Allowed): Promise<boolean> {
    try {
      return (await this.#policy(await this.#row(session)))(host, isNamed(ruling)).verdict === "allow";
    } catch {
      // A connection that can't be judged is refused.
      return false;
    }
  }

  async standing(session: Session): Promise<(host: string, port: number, ruling: Allowed) => boolean> {
    const policy = await this.#policy(await this.#row(session)).catch((error: unknown) => {
      if (error instanceof VivError && error.code === "config_invalid") return undefined;
      throw error;
    });
    return (host, port, ruling) => {
      // A config is edited: nothing new is let out until it can be read, and what is open stays.
      const { verdict } = policy?.(host, isNamed(ruling)) ?? { verdict: "allow" };
      return verdict === "allow" || (verdict === "ask" && session.approved.has(placeOf(host, port)));
    };
  }

  async #row({ sandbox }: Session): Promise<SandboxRow> {
    const row = await this.#store.sandboxes.get(sandbox);
    if (row === undefined) throw new Error("the sandbox is not known");
    return row;
  }

  async #policy(row: SandboxRow): Promise<HostPolicy> {
    return this.#policies.of(row, this.#approvals);
  }

  async #judged(session: Session, question: Question, ruling: Allowed, signal: AbortSignal | undefined): Promise<Ruling | undefined> {
    const { host, port } = question;
    let patience: AbortSignal | undefined;
    for (;;) {
      const row = await this.#row(session);
      const judged = (await this.#policy(row))(host, isNamed(ruling));
      if (judged.verdict === "allow") return undefined;
      if (judged.verdict === "deny")
        return deny("policy", judged.reason, "Go on without it, or ask for another rule of the policy.", judged.rule);
      patience ??= AbortSignal.any([AbortSignal.timeout(this.#holdMs), ...(signal === undefined ? [] : [signal])]);
      const answered = await this.#ask(askingOf(row, question, judged), patience, signal);
      if (typeof answered === "object") return answered;
      if (answered === undefined) continue;
      session.approved.add(placeOf(host, port));
      return { ...ruling, approval: answered };
    }
  }

  /** The question whose yes is used, or the refusal; nothing where another connection has used the yes and it is to be asked anew. */
  async #ask(asking: Asking, patience: AbortSignal, signal: AbortSignal | undefined): Promise<string | Denied | undefined> {
    const approvals = this.#approvals;
    const options = { patience, signal, asked: () => this.#reach("network.asked") };
    const asked = await askPerson(approvals, asking, options);
    if (asked.answer === "again") return undefined;
    if (asked.answer === "too many")
      return deny("host_held", `${asked.waiting} questions of this sandbox wait already.`, "Wait until some are answered.");
    const { answer, approval } = asked;
    if (answer === "yes") return approval;
    if (answer === "no") return refused(approval, asking);
    return deny("host_held", `${asking.target} waits for a person: ${approval}.`, `Ask for \`viv approve ${approval}\`, then try again.`);
  }
}

function isOpened({ opened, rules }: Session, host: string, port: number): boolean {
  return [...opened, ...(rules.private ?? [])].some((rule) => rule.host === host && rule.ports.includes(port));
}

function registryQuestion({ id, name, project }: SandboxRow, { host, port }: { host: string; port: number }, file: string): Asking {
  const place = `${shownHost(host)}:${port}`;
  return {
    sandbox: id,
    sandboxName: name,
    project,
    kind: "private",
    target: place,
    rule: "private addresses",
    reason: `${file} names it as a package registry, and it is closed: its address is private, or its port is not one of the web. Once is for this sandbox, always for the project.`,
    always: `private ${place}`,
  };
}

function refused(id: string, { rule }: Asking): Denied {
  return deny("policy", `A person was asked (${id}), and the answer is no.`, "Go on without it.", rule ?? undefined);
}

/** An approval counts for this host and port; `always` counts for the host, on every port that the network rules open. */
function askingOf({ id, name, project }: SandboxRow, { host, port }: Question, { rule, reason }: Judgement): Asking {
  const place = { kind: "host", host, port } as const;
  const action = { kind: "host", host } as const;
  return {
    sandbox: id,
    sandboxName: name,
    project,
    kind: "host",
    target: shownAction(place),
    exact: canonicalAction(place),
    rule,
    reason,
    always: alwaysRule(action),
    action,
  };
}

function placeOf(host: string, port: number): string {
  return `${host}:${port}`;
}
