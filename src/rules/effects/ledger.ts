/**
 * The ledger of requests by which sandboxes may have changed something outside. An entry is durable before its request is sent. Where
 * effects are held, a person is asked about exactly this request, body included, and an approval sends it once.
 */
import type { Approvals, Question } from "../approvals/approvals.ts";
import { errorText, type Logger } from "../../base/host/log.ts";
import { hashOfBody, type EffectRecords, type EffectRequest, type Receipt } from "../network/effects.ts";
import { deny, type Denied } from "../network/rules.ts";
import type { Session } from "../network/session.ts";
import type { Effect } from "../../base/schema/effect.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { redact } from "../../base/schema/secret-patterns.ts";
import type { Store } from "../../base/store/store.ts";

const MOST_URL = 2048;
/** Entries of a sandbox among which the one of a question is looked for. */
const LOOKED_THROUGH = 200;

export interface LedgerParts {
  readonly store: Store;
  readonly log: Logger;
  readonly approvals: Approvals;
  /** How long a request that is held waits for its answer. */
  readonly holdMs?: number;
  readonly reach?: (point: string) => void;
}

export class Ledger implements EffectRecords {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #holdMs: number;
  readonly #reach: (point: string) => void;
  readonly #approvals: Approvals;

  constructor({ store, log, approvals, holdMs = LIMITS.effectHoldMs, reach = () => undefined }: LedgerParts) {
    this.#store = store;
    this.#log = log;
    this.#approvals = approvals;
    this.#holdMs = holdMs;
    this.#reach = reach;
  }

  async begin(session: Session, request: EffectRequest, signal: AbortSignal): Promise<Receipt | Denied> {
    const entry: Effect = {
      id: newId("effect"),
      at: new Date().toISOString(),
      sandbox: session.sandbox,
      method: request.method,
      url: redact(request.url).slice(0, MOST_URL),
      bodyBytes: request.body?.length ?? null,
      bodyHash: request.body === undefined ? null : hashOfBody(request.body),
      state: "sent",
      approval: null,
      status: null,
      answeredAt: null,
    };
    try {
      return session.rules.effects === "hold" ? await this.#hold(entry, request, signal) : await this.#sent(entry);
    } catch (error) {
      return deny(
        "not_recorded",
        `The request could not be recorded: ${errorText(error)}`,
        "The request was not sent. Free space on the host, then try again.",
      );
    }
  }

  async #sent(entry: Effect): Promise<Receipt> {
    await this.#put(entry);
    this.#reach("effect.recorded");
    return (status) => {
      this.#reach("effect.answered");
      const answered = { ...entry, state: status === null ? "broken" : "answered", status, answeredAt: new Date().toISOString() } as const;
      this.#put(answered).catch((error: unknown) =>
        this.#log.warn("a receipt was not kept", { effect: entry.id, error: errorText(error) }),
      );
    };
  }

  async #hold(entry: Effect, request: EffectRequest, signal: AbortSignal): Promise<Receipt | Denied> {
    const row = await this.#store.sandboxes.get(entry.sandbox);
    if (row === undefined) return deny("effect_held", "The sandbox is not known any more.", "Go on without it.");
    const question: Question = {
      sandbox: row.id,
      sandboxName: row.name,
      project: row.project,
      kind: "effect",
      target: `${request.method} ${shownUrl(request.url)} (${entry.bodyBytes ?? 0} bytes, sha256 ${entry.bodyHash ?? "-"})`,
      rule: "effects: hold",
      reason: "The request can change something outside.",
      always: null,
    };
    if (await this.#approvals.use(question)) return this.#allowed(entry);
    const waiting = await this.#approvals.tooMany(row.id, ({ kind, target }) => kind === "effect" && target === question.target);
    if (waiting !== undefined)
      return deny("effect_held", `${waiting} questions of this sandbox wait already.`, "Wait until some are answered.");
    const asked = await this.#approvals.ask(question);
    const held: Effect = { ...entry, state: "held", approval: asked.id };
    await this.#put(held);
    this.#reach("effect.held");
    const answer = await this.#approvals.wait(asked.id, AbortSignal.any([signal, AbortSignal.timeout(this.#holdMs)]));
    if (!signal.aborted && (await this.#approvals.use(question))) return this.#allowed(held);
    if (answer.state === "waiting" || answer.state === "approved")
      return deny(
        "effect_held",
        `The request waits for a person: ${asked.id}.`,
        `Ask for \`viv approve ${asked.id}\`, then send it again.`,
      );
    await this.#put({ ...held, state: "denied" });
    return deny("effect_denied", `A person was asked (${asked.id}), and the answer is no.`, "Go on without it.");
  }

  /** The approval is already marked as used, so the request is sent at most once, also if the server fails now. */
  async #allowed(entry: Effect): Promise<Receipt> {
    this.#reach("effect.allowed");
    const asked = (await this.#store.effects.list({ sandbox: entry.sandbox }, { limit: LOOKED_THROUGH })).find(
      ({ state, method, url, bodyHash }) => state === "held" && method === entry.method && url === entry.url && bodyHash === entry.bodyHash,
    );
    // The entry of the question goes on, so that one request has one.
    return this.#sent({ ...(asked ?? entry), state: "sent" });
  }

  #put(entry: Effect): Promise<void> {
    return this.#store.change((change) => change.effects.put(entry));
  }
}

/** An answer counts for what is shown: of a long address that is its hash, too. */
function shownUrl(url: string): string {
  return url.length <= MOST_URL ? url : `${url.slice(0, MOST_URL)}… (${url.length} characters, sha256 ${hashOfBody(Buffer.from(url))})`;
}
