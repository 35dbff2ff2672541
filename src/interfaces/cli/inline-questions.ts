/**
 * Questions of the sandboxes that a terminal works in. A line says that there is one; ctrl-] shows it with the server's text, on a screen
 * that nothing else writes to, and there it is answered. Until then all keys are the command's: typing is never an answer.
 */
import { VivError } from "../../base/schema/errors.ts";
import type { Question } from "../../base/schema/question.ts";
import { answerTo, choices, explain, send, showQuestion } from "./answering.ts";
import type { Caller } from "./caller.ts";
import type { Stage } from "./held-output.ts";
import { QuestionPage } from "./question-page.ts";
import { shortId } from "./references.ts";
import { clean, cleanPath, cut } from "./text.ts";
import type { WatchContext } from "./watch-experiment.ts";

const PREFIX = 0x1d;
const ESCAPE = 0x1b;
const INTERRUPT = "\u0003";
const MOST_ANNOUNCED = 40;
const NOTHING = Buffer.alloc(0);

/** Whose questions are shown: one sandbox's, or those of several that may become others meanwhile. */
export type QuestionSource = string | (() => Promise<ReadonlySet<string>>);

/** `say` writes a line where it does not disturb what is shown. */
export type QuestionContext = WatchContext & {
  readonly say: (line: string) => void;
  readonly stage: Stage;
  /** This process if left out. */
  readonly caller?: Caller;
};

export class InlineQuestions {
  readonly #around: QuestionContext;
  readonly #askers: QuestionSource;
  readonly #approver: string;
  readonly #page: QuestionPage;
  readonly #ending = new AbortController();
  readonly #seen = new Set<string>();
  /** Lines to print when the question has left the screen. */
  #unsaid: string[] = [];
  /** The question that a line announced. */
  #waiting: Question | undefined;
  /** The question on the screen, from the moment when the person pressed ctrl-]. */
  #shown: Question | undefined;

  constructor(around: QuestionContext, askers: QuestionSource, approver: string) {
    this.#around = around;
    this.#askers = askers;
    this.#approver = approver;
    this.#page = new QuestionPage(around.screen, around.stage, around.caller);
  }

  /** Runs until the end. If the server ends, the command's own connection ends too and reports it. */
  start(): void {
    this.#listen().catch(() => undefined);
  }

  end(): void {
    this.#ending.abort();
    this.#close();
  }

  /** What of the keys is the command's. */
  pass(chunk: Buffer): Buffer {
    if (this.#shown !== undefined) {
      // A key that is pressed comes alone. What a terminal reports, or what was pasted, does not.
      if (chunk.length === 1) this.#press(this.#shown, chunk.toString("latin1").toLowerCase());
      return NOTHING;
    }
    // What a terminal reports by itself begins with an escape, and a program inside may have made it report: no person typed that.
    const at = this.#waiting === undefined || chunk.includes(ESCAPE) ? -1 : chunk.indexOf(PREFIX);
    if (this.#waiting === undefined || at < 0) return chunk;
    this.#open(this.#waiting).catch((error: unknown) => this.#fail(error));
    return chunk.subarray(0, at);
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
    const { client } = this.#around;
    const { approvals } = await client.call("listApprovals", {});
    const current = this.#waiting;
    if (current !== undefined && approvals.some(({ id }) => id === current.id)) return;
    if (current !== undefined) {
      if (this.#shown?.id === current.id) this.#close();
      this.#say(`viv: ${shortId(current.id)} was answered, or its deadline has passed.`);
    }
    this.#waiting = undefined;
    const askers = typeof this.#askers === "string" ? new Set([this.#askers]) : await this.#askers();
    const next = approvals.findLast(({ id, sandbox }) => askers.has(sandbox ?? "") && !this.#seen.has(id));
    if (next === undefined) return;
    this.#seen.add(next.id);
    this.#waiting = next;
    const { id, sandboxName, kind, target } = next;
    const about = cut(cleanPath(target), MOST_ANNOUNCED);
    this.#say(`viv: ctrl-] shows question ${shortId(id)}: ${sandboxName ?? "this machine"}, ${kind}, ${about}`);
  }

  /** The question as the server has it now. */
  async #open(waiting: Question): Promise<void> {
    this.#shown = waiting;
    this.#around.stage.hold();
    const question = await this.#around.client.call("inspectApproval", { approval: waiting.id });
    if (this.#shown !== waiting) return;
    this.#shown = question;
    this.#draw(question, []);
  }

  #draw(question: Question, explained: readonly string[]): void {
    const lines: string[] = [];
    showQuestion((line) => lines.push(line), { paint: (_, text) => text }, question);
    this.#page.show([...lines, ...explained, "", choices(question)]);
  }

  #close(): void {
    this.#shown = undefined;
    this.#page.close();
    this.#around.stage.release();
    for (const line of this.#unsaid.splice(0)) this.#around.say(line);
  }

  #say(line: string): void {
    if (this.#shown === undefined) this.#around.say(line);
    else this.#unsaid.push(line);
  }

  #press(question: Question, key: string): void {
    if (key === "s" || key === INTERRUPT) return this.#done(async () => this.#look());
    if (key === " " || key === "\r") this.#page.next();
    if (!this.#page.isSeen) return;
    const answer = answerTo(question, key);
    if (answer !== undefined && (answer === "deny" || this.#page.isRead))
      this.#done(async () => send(this.#around, question, answer, this.#approver, this.#around.say));
    else if (key === "e") this.#explain(question).catch((error: unknown) => this.#fail(error));
  }

  async #explain(question: Question): Promise<void> {
    const lines: string[] = [];
    const plain = { client: this.#around.client, screen: { paint: (_: unknown, text: string) => text } };
    await explain(plain, question, (line) => lines.push(line));
    if (this.#shown === question) this.#draw(question, lines);
  }

  /** The question leaves the screen; what came of it is said where the command goes on. */
  #done(work: () => Promise<unknown>): void {
    this.#waiting = undefined;
    this.#close();
    work().catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#close();
    this.#say(`viv: ${clean(VivError.from(error).message)}`);
  }
}
