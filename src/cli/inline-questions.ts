/**
 * Questions of the sandboxes that a terminal works in, shown between what their commands show. The keys belong to the command, so an
 * answer begins with ctrl-]: nobody says yes by typing.
 */
import type { Approval } from "../schema/approval.ts";
import { answerTo, choices, explain, send, showQuestion, UNREAD_MS } from "./answering.ts";
import { shortId } from "./references.ts";
import type { Watching } from "./watch-experiment.ts";
import { clean } from "./text.ts";
import { VivError } from "../schema/errors.ts";

const PREFIX = 0x1d;
const ESCAPE = 0x1b;

/** Whose questions are shown: one sandbox's, or those of several that may become others meanwhile. */
export type Askers = string | (() => Promise<ReadonlySet<string>>);

/** `say` writes a line where it does not disturb what is shown. */
export type Asking = Watching & { readonly say: (line: string) => void };

export class InlineQuestions {
  readonly #around: Asking;
  readonly #askers: Askers;
  readonly #approver: string;
  readonly #ending = new AbortController();
  readonly #seen = new Set<string>();
  #current: { readonly question: Approval; readonly shownAt: number } | undefined;
  /** What the key after ctrl-] is about. */
  #meant: Approval | undefined;

  constructor(around: Asking, askers: Askers, approver: string) {
    this.#around = around;
    this.#askers = askers;
    this.#approver = approver;
  }

  /** Until the end; a server that goes away ends the command's own connection, too, and that is told there. */
  start(): void {
    this.#listen().catch(() => undefined);
  }

  end(): void {
    this.#ending.abort();
  }

  /** What of the keys is the command's. */
  pass(chunk: Buffer): Buffer {
    // What a terminal reports by itself begins with an escape, and a program inside may have made it report: nobody typed that.
    if ((this.#current === undefined && this.#meant === undefined) || chunk.includes(ESCAPE)) return chunk;
    const passed: number[] = [];
    for (const key of chunk) {
      const question = this.#meant;
      this.#meant = undefined;
      if (question !== undefined && !this.#act(question, String.fromCharCode(key))) passed.push(PREFIX, key);
      else if (question === undefined && key === PREFIX && this.#isRead) this.#meant = this.#current?.question;
      else if (question === undefined) passed.push(key);
    }
    return Buffer.from(passed);
  }

  get #isRead(): boolean {
    return this.#current !== undefined && performance.now() - this.#current.shownAt >= UNREAD_MS;
  }

  async #listen(): Promise<void> {
    const { client } = this.#around;
    const { newest } = await client.call("listEvents", { limit: 1 });
    await this.#look();
    const one = typeof this.#askers === "string" ? { sandbox: this.#askers } : {};
    for await (const { type } of client.events(newest, { ...one, signal: this.#ending.signal }))
      if (type === "approval.asked" || type === "approval.answered") await this.#look();
  }

  /** One at a time, the oldest first. */
  async #look(): Promise<void> {
    const { client, screen, say } = this.#around;
    const { approvals } = await client.call("listApprovals", {});
    const { question: current } = this.#current ?? {};
    if (current !== undefined && approvals.some(({ id }) => id === current.id)) return;
    if (current !== undefined) say(`viv: ${shortId(current.id)} was answered, or nobody answered in time.`);
    this.#current = undefined;
    const askers = typeof this.#askers === "string" ? new Set([this.#askers]) : await this.#askers();
    const next = approvals.findLast(({ id, sandbox }) => askers.has(sandbox ?? "") && !this.#seen.has(id));
    if (next === undefined) return;
    this.#seen.add(next.id);
    showQuestion(say, screen, next);
    say(choices(next, "ctrl-] and then "));
    this.#current = { question: next, shownAt: performance.now() };
  }

  /** Whether the key means something. */
  #act(question: Approval, key: string): boolean {
    const answer = answerTo(question, key);
    if (answer === undefined && key !== "e" && key !== "s") return false;
    const { say } = this.#around;
    if (key !== "e") this.#current = undefined;
    const done =
      answer !== undefined
        ? send(this.#around, question, answer, this.#approver, say)
        : key === "e"
          ? explain(this.#around, question, say)
          : this.#look();
    done.catch((error: unknown) => say(`viv: ${clean(VivError.from(error).message)}`));
    return true;
  }
}
