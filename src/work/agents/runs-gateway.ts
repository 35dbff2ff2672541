/** What a sandbox asks of the run in it, from inside. Everything that it says is the agent's word. */
import { VivError } from "../../base/schema/errors.ts";
import type { RunStatusInput } from "../../base/schema/gateway.ts";
import { RunMessage, type Run, type ToldEvent } from "../../base/schema/run.ts";
import type { RunMessageRow } from "../../base/store/rows.ts";
import { LIMITED_STATUSES, type ModelAnswer } from "../../rules/models/retry-after.ts";
import type { ReadConversation, RunGateway } from "./run-gateway.ts";
import type { RunWork } from "./run-work.ts";
import type { Runs } from "./runs.ts";

export class RunsGateway implements RunGateway {
  readonly #runs: Runs;

  constructor(runs: Runs) {
    this.#runs = runs;
  }

  async find(sandbox: string): Promise<Run | undefined> {
    const work = this.#runs.in(sandbox);
    return work === undefined ? undefined : this.#runs.inspect(work.journal.row.id);
  }

  async setStatus(sandbox: string, { status, text }: RunStatusInput): Promise<Run> {
    const work = this.#work(sandbox);
    if (text !== "") work.journal.event({ type: "message", from: "agent", text, message: null });
    await work.journal.written();
    if (status !== "working") work.stop(status, text === "" ? `The agent says that it is ${status}.` : text);
    return this.#runs.inspect(work.journal.row.id);
  }

  async events(sandbox: string, events: readonly ToldEvent[]): Promise<Run> {
    const work = this.#work(sandbox);
    for (const event of events) work.agent?.told(event);
    await work.journal.written();
    return this.#runs.inspect(work.journal.row.id);
  }

  async messages(sandbox: string, waitMs: number, signal: AbortSignal): Promise<RunMessage[]> {
    const { messages, journal } = this.#work(sandbox);
    const patience = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
    const over = new Promise<void>((resolve) => patience.addEventListener("abort", () => resolve(), { once: true }));
    while (messages.next(false) === undefined && !patience.aborted) await Promise.race([messages.added, over]);
    const fetched: RunMessageRow[] = [];
    for (let next = messages.next(false); next !== undefined; next = messages.next(false)) {
      messages.sent(next.id);
      fetched.push(next);
    }
    await journal.written();
    return fetched.map((row) => RunMessage.parse({ ...row, state: "sent" }));
  }

  async settle(sandbox: string, message: string, delivered: boolean, reason: string | null): Promise<void> {
    const { messages, journal } = this.#work(sandbox);
    if (!messages.unconfirmed.some(({ id }) => id === message)) throw new VivError("not_found", `No message ${message} waits for that.`);
    if (delivered) messages.delivered(message);
    else messages.failed(message, reason ?? "The agent could not be given the message.");
    await journal.written();
  }

  async conversation(
    sandbox: string,
    of: "self" | "before",
    asked: { readonly budget: number; readonly search: string | undefined },
  ): Promise<ReadConversation> {
    const { id, from, handed } = this.#work(sandbox).journal.row;
    if (of === "self") return this.#runs.remembered(id, asked);
    if (from == null) throw new VivError("not_found", "This run took over no other.", { remedy: "`of=self` has its own conversation." });
    return this.#runs.remembered(from, { ...asked, first: handed?.records });
  }

  modelAnswered(sandbox: string, { status, waitMs }: ModelAnswer): void {
    const work = this.#runs.in(sandbox);
    if (work === undefined) return;
    if (!LIMITED_STATUSES.has(status)) return status < 300 ? work.agent?.modelAnswered() : undefined;
    if (work.journal.row.rateLimit === "stop")
      return work.stop("failed", "Its model API answered with a rate limit, and it was not to wait for the end of that; its work is kept.");
    const until = waitMs === null ? null : new Date(Date.now() + waitMs).toISOString();
    work.agent?.told({ type: "waiting", for: "rate_limit", until, text: `The model API answered ${status}: it is asked too much.` });
  }

  personAsked(sandbox: string, question: { readonly until: string | null; readonly text: string } | null): void {
    const agent = this.#runs.in(sandbox)?.agent;
    agent?.told(question === null ? { type: "resumed", for: "person" } : { type: "waiting", for: "person", ...question });
  }

  async rollBack(sandbox: string, snapshot: string): Promise<boolean> {
    return this.#runs.rollBack(sandbox, snapshot);
  }

  #work(sandbox: string): RunWork {
    const work = this.#runs.in(sandbox);
    if (work !== undefined) return work;
    throw new VivError("not_found", "No agent's run is in this sandbox.", { remedy: "`viv task` begins one." });
  }
}
