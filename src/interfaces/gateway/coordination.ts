/**
 * Requests between siblings that wait for an answer. Who waits for whom is known here, so that a circle of waiting never begins.
 * Everything is in memory: a server that ends cuts the connections of those who wait, and they may ask again.
 */
import { VivError } from "../../base/schema/errors.ts";
import type { Message, SiblingAnswer } from "../../base/schema/gateway.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";

/** A sandbox as its row says. */
export interface Sibling {
  readonly id: string;
  readonly name: string;
  readonly project: string;
}

interface Exchange {
  readonly message: Message;
  readonly from: Sibling;
  readonly to: Sibling;
  readonly answered: PromiseWithResolvers<SiblingAnswer>;
  /** Recorded, so that it may be seen. */
  ready: boolean;
  /** Seen by the sibling. */
  read: boolean;
}

export interface RequestOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Must succeed before the sibling sees the message. */
  readonly record: (message: Message) => Promise<unknown>;
  /** Answers in the place of a sibling that is no sandbox yet; until the signal. */
  readonly serve?: (signal: AbortSignal) => Promise<SiblingAnswer>;
}

export class Coordination {
  readonly #open = new Map<string, Exchange>();
  readonly #listeners = new Map<string, Set<() => void>>();
  #sequence = 0;

  /** Sends a message and waits for its answer. */
  async request(
    from: Sibling,
    to: Sibling,
    text: Pick<Message, "action" | "context" | "conversation">,
    options: RequestOptions,
  ): Promise<[Message, SiblingAnswer]> {
    this.#refuse(from, to);
    const exchange = this.#begin(from, to, text, options.timeoutMs);
    const { id } = exchange.message;
    const over = new AbortController();
    try {
      await options.record(exchange.message);
      exchange.ready = true;
      if (options.serve === undefined) for (const wake of this.#listeners.get(to.id) ?? []) wake();
      else options.serve(over.signal).then(exchange.answered.resolve, exchange.answered.reject);
      return [exchange.message, await patiently(exchange, options)];
    } finally {
      this.#open.delete(id);
      over.abort();
    }
  }

  /** What siblings ask this sandbox, the oldest first; waits for a message if there is none. */
  async messages(sandbox: string, after: number, waitMs: number, signal: AbortSignal): Promise<Message[]> {
    const found = this.#waiting(sandbox, after);
    if (found.length > 0 || waitMs <= 0) return seen(found);
    const { promise, resolve } = Promise.withResolvers<void>();
    const listeners = this.#listeners.get(sandbox) ?? new Set();
    this.#listeners.set(sandbox, listeners.add(resolve));
    const timer = setTimeout(resolve, waitMs);
    signal.addEventListener("abort", () => resolve(), { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      listeners.delete(resolve);
      if (listeners.size === 0) this.#listeners.delete(sandbox);
    }
    return signal.aborted ? [] : seen(this.#waiting(sandbox, after));
  }

  /** The message that waits for this sandbox's answer, and who sent it. */
  asked(sandbox: string, message: string): { from: Sibling; message: Message } {
    const exchange = this.#open.get(message);
    if (exchange === undefined || exchange.to.id !== sandbox || !exchange.ready)
      throw new VivError("not_found", `No message ${message} waits for an answer.`, {
        remedy: "The sandbox that sent it may have given up.",
      });
    return exchange;
  }

  answer(sandbox: string, message: string, answer: SiblingAnswer): void {
    this.asked(sandbox, message);
    this.#open.get(message)?.answered.resolve(answer);
    this.#open.delete(message);
  }

  /** The sandbox has ended: its siblings stop waiting for it. */
  forget(sandbox: string): void {
    for (const { from, to, answered } of this.#open.values()) {
      if (from.id === sandbox || to.id === sandbox) answered.reject(new VivError("not_running", `Sandbox ${to.name} has ended.`));
    }
    for (const wake of this.#listeners.get(sandbox) ?? []) wake();
  }

  #waiting(sandbox: string, after: number): Exchange[] {
    return [...this.#open.values()].filter(({ to, ready, message }) => ready && to.id === sandbox && message.sequence > after);
  }

  #begin(from: Sibling, to: Sibling, text: Pick<Message, "action" | "context" | "conversation">, timeoutMs: number): Exchange {
    const now = Date.now();
    const message: Message = {
      id: newId("message"),
      sequence: (this.#sequence += 1),
      from: from.id,
      fromName: from.name,
      provenance: "sibling",
      action: text.action,
      context: text.context ?? null,
      conversation: text.conversation,
      depth: this.#depth(from.id),
      sentAt: new Date(now).toISOString(),
      expiresAt: new Date(now + timeoutMs).toISOString(),
    };
    const exchange: Exchange = { message, from, to, answered: Promise.withResolvers<SiblingAnswer>(), ready: false, read: false };
    // It may be ended before a caller waits for it.
    exchange.answered.promise.catch(() => undefined);
    this.#open.set(message.id, exchange);
    return exchange;
  }

  /** One more than the deepest request it has read and not answered: that is why it asks. */
  #depth(sandbox: string): number {
    const reasons = [...this.#open.values()].filter(({ to, read }) => read && to.id === sandbox);
    return Math.max(0, ...reasons.map(({ message }) => message.depth)) + 1;
  }

  #refuse(from: Sibling, to: Sibling): void {
    if (from.id === to.id) throw new VivError("invalid_input", "A sandbox can't ask itself.", { remedy: "Name a sibling." });
    const way = this.#way(to, from.id, new Set());
    if (way !== undefined) throw new VivError("coordination_cycle", `${[...way, from.name].join(" waits for ")}, which would wait for it.`);
    if (this.#depth(from.id) > LIMITS.coordinationDepth)
      throw new VivError("no_capacity", `${LIMITS.coordinationDepth} requests wait for each other already, which is the most.`, {
        remedy: "Answer what was asked before asking further.",
      });
    const inbox = [...this.#open.values()].filter((exchange) => exchange.to.id === to.id).length;
    if (inbox >= LIMITS.coordinationInbox)
      throw new VivError("no_capacity", `${inbox} requests wait for ${to.name} already.`, { remedy: "Try again later." });
    if (this.#coordinating(from, to) > LIMITS.coordinatingSiblings)
      throw new VivError("no_capacity", `${LIMITS.coordinatingSiblings} siblings coordinate already, which is the most.`, {
        remedy: "Try again when one of them has its answer.",
      });
  }

  /** Siblings that ask or are asked, these two included. */
  #coordinating(from: Sibling, to: Sibling): number {
    const busy = new Set([from.id, to.id]);
    for (const exchange of this.#open.values()) if (exchange.from.project === from.project) busy.add(exchange.from.id).add(exchange.to.id);
    return busy.size;
  }

  /** Names of those on the way by which one waits for the other, if it does. */
  #way(one: Sibling, other: string, looked: Set<string>): string[] | undefined {
    looked.add(one.id);
    for (const { from, to } of this.#open.values()) {
      if (from.id !== one.id || looked.has(to.id)) continue;
      const rest = to.id === other ? [] : this.#way(to, other, looked);
      if (rest !== undefined) return [one.name, ...rest];
    }
    return undefined;
  }
}

function seen(exchanges: readonly Exchange[]): Message[] {
  for (const exchange of exchanges) exchange.read = true;
  return exchanges.map(({ message }) => message);
}

async function patiently({ to, answered }: Exchange, { timeoutMs, signal, serve }: RequestOptions): Promise<SiblingAnswer> {
  const { promise, reject } = Promise.withResolvers<never>();
  const hint = serve === undefined ? {} : { remedy: "It works on: ask the same again to get its answer." };
  const late = new VivError("timeout", `${to.name} did not answer within ${timeoutMs / 1000} s.`, hint);
  const timer = setTimeout(() => reject(late), timeoutMs);
  const gone = (): void => reject(new VivError("cancelled", "The caller that asked has gone."));
  signal.addEventListener("abort", gone, { once: true });
  try {
    return await Promise.race([answered.promise, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
  }
}
