/** Which projects a secret is for. A project that was not named has a person asked at its first use. */
import type { Approvals, SandboxQuestion } from "../approvals/approvals.ts";
import { askPerson } from "../approvals/asking.ts";
import { deny, type Denied } from "../network/rules.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Secret } from "../../base/schema/secret.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** Sandboxes whose yes is remembered; the oldest are asked about again. */
const MOST_REMEMBERED = 4096;

export class SecretScope {
  readonly #store: Store;
  readonly #approvals: Approvals | undefined;
  readonly #holdMs: number;
  /** What a person granted once: to a sandbox, as long as the server lives. Programs use a login in many requests at a time. */
  readonly #granted = new Map<string, Set<string>>();

  constructor(store: Store, approvals: Approvals | undefined, holdMs: number = LIMITS.effectHoldMs) {
    this.#store = store;
    this.#approvals = approvals;
    this.#holdMs = holdMs;
  }

  /** Nothing if the sandbox may use them all, or why not. Waits for a person where one has to be asked. */
  async permit(sandbox: string, secrets: readonly Secret[], signal: AbortSignal): Promise<Denied | undefined> {
    const limited = secrets.filter(({ projects }) => projects !== null);
    if (limited.length === 0) return undefined;
    const row = await this.#store.sandboxes.get(sandbox);
    if (row === undefined) return deny("secret_denied", "The sandbox is not known.", "Try again in another one.");
    for (const secret of limited) {
      const refused = secret.projects?.includes(row.project) === true ? undefined : await this.#ask(row, secret, signal);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  async #ask(row: SandboxRow, secret: Secret, signal: AbortSignal): Promise<Denied | undefined> {
    const approvals = this.#approvals;
    if (approvals === undefined) return deny("secret_held", "No person can be asked now.", "Try again in a moment.");
    const question = questionOf(row, secret);
    const patience = AbortSignal.any([AbortSignal.timeout(this.#holdMs), signal]);
    for (;;) {
      if (this.#granted.get(row.id)?.has(ruleOf(secret)) === true) return undefined;
      const rules = await approvals.rules(row.project);
      if (rules.some(({ kind, always }) => kind === "secret" && always === question.always)) return undefined;
      const asked = await askPerson(approvals, question, { patience, signal });
      if (asked.answer === "yes") return this.#grant(row.id, secret);
      if (asked.answer === "no")
        return deny(
          "secret_denied",
          `A person was asked for the secret ${secret.name} (${asked.approval}), and the answer is no.`,
          "Go on without it.",
        );
      if (asked.answer === "too many")
        return deny("secret_held", `${asked.waiting} questions of this sandbox wait already.`, "Wait until some are answered.");
      if (asked.answer === "none yet")
        return deny(
          "secret_held",
          `The secret ${secret.name} is not for this project unless a person says so: ${asked.approval} waits.`,
          `Ask for \`viv approve ${asked.approval}\`, then try again.`,
        );
    }
  }

  #grant(sandbox: string, secret: Secret): undefined {
    const granted = this.#granted.get(sandbox) ?? new Set();
    const [oldest] = this.#granted.keys();
    if (oldest !== undefined && this.#granted.size >= MOST_REMEMBERED) this.#granted.delete(oldest);
    this.#granted.set(sandbox, granted.add(ruleOf(secret)));
  }
}

/** With its age: another secret that gets the same name later is another one. */
function ruleOf({ name, createdAt }: Secret): string {
  return `secret ${name} (kept since ${createdAt})`;
}

function questionOf({ id, name, project }: SandboxRow, secret: Secret): SandboxQuestion {
  return {
    sandbox: id,
    sandboxName: name,
    project,
    kind: "secret",
    target: `${secret.name}, which goes to ${secret.hosts.join(", ")}`,
    exact: JSON.stringify(["secret", ruleOf(secret)]),
    rule: "the projects of the secret",
    reason: `The secret was not kept for ${project}. Once is for this sandbox, always for the project.`,
    always: ruleOf(secret),
  };
}
