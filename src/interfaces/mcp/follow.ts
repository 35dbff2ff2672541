/** Waits for work at the server: to its end, to a question for a person, or as long as the caller has patience. */
import type { Client } from "../client/client.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Question } from "../../base/schema/question.ts";
import { mayAsk } from "./asking.ts";
import type { Call } from "./call.ts";

/** Work as it is listened to. */
export interface Work<State> {
  /** As it is now. */
  look(): Promise<State>;
  isOver(state: State): boolean;
  /** Ids of the sandboxes whose questions are its questions. */
  sandboxes(state: State): readonly string[];
  /** Something for each moment at which there may be something new, until the signal; what goes on is told. */
  listen(tell: (text: string) => void, signal: AbortSignal): AsyncIterable<unknown>;
  /** Ends it, and keeps what was done. */
  cancel(): Promise<unknown>;
}

export interface Followed<State> {
  readonly state: State;
  /** What a person is asked. */
  readonly question: Question | undefined;
}

/** Events say when to look; this is for what has none, such as a question about a host. */
const LOOK_AGAIN_MS = 2_000;

/** The oldest question of these sandboxes that waits for a person. */
export async function questionOf(client: Client, sandboxes: readonly string[]): Promise<Question | undefined> {
  if (sandboxes.length === 0) return undefined;
  const { approvals } = await client.call("listApprovals", {});
  return approvals.findLast(({ sandbox, kind }) => sandbox !== null && kind !== "promotion" && sandboxes.includes(sandbox));
}

/** A question ends the waiting only where this caller's person can answer it. */
export async function follow<State>(call: Call, work: Work<State>): Promise<Followed<State>> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const timer = setTimeout(end, call.patienceMs);
  const signs = setInterval(() => call.sign(), LIMITS.toolProgressMs);
  call.signal.addEventListener("abort", end, { once: true });
  if (call.signal.aborted) end();
  try {
    const followed = await watch(call, work, over.signal);
    if (!call.isCancelled || work.isOver(followed.state)) return followed;
    await work.cancel();
    return { state: await work.look(), question: undefined };
  } finally {
    clearTimeout(timer);
    clearInterval(signs);
    end();
    call.signal.removeEventListener("abort", end);
  }
}

async function watch<State>(call: Call, work: Work<State>, signal: AbortSignal): Promise<Followed<State>> {
  const changes = new Changes(work, (text) => call.tell(text), signal);
  let told: string | undefined;
  for (;;) {
    const state = await work.look();
    if (work.isOver(state)) return { state, question: undefined };
    const question = await questionOf(call.client, work.sandboxes(state));
    if (question !== undefined && mayAsk(call, question)) return { state, question };
    if (question !== undefined && question.id !== told) call.tell(`Waits for a person's answer to ${(told = question.id)}`);
    if (signal.aborted) return { state, question };
    await changes.next();
  }
}

/** Listens in the background; several changes between two looks are one. */
class Changes {
  readonly #signal: AbortSignal;
  #isNew = false;
  #wake: () => void = () => undefined;

  constructor(work: Pick<Work<unknown>, "listen">, tell: (text: string) => void, signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    // A stream that breaks meets the next look, which tells of it.
    this.#listen(work, tell).catch(() => this.#notice());
  }

  async #listen(work: Pick<Work<unknown>, "listen">, tell: (text: string) => void): Promise<void> {
    for await (const _ of work.listen(tell, this.#signal)) this.#notice();
    this.#notice();
  }

  #notice(): void {
    this.#isNew = true;
    this.#wake();
  }

  async next(): Promise<void> {
    if (!this.#isNew && !this.#signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(resolve, LOOK_AGAIN_MS);
      await promise.finally(() => clearTimeout(timer));
    }
    this.#isNew = false;
  }
}
