/** Questions that only a person may answer. */
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import { VivariumError } from "./error.ts";
import { untilOver } from "./following.ts";
import type { Question } from "./types/approvals.ts";

/** Questions that wait for a person. Answering needs the token of one: `new Vivarium({ approver })`. */
export class Approvals {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Those that wait, the newest first; with `all` also those that were answered. */
  async list(options: { readonly all?: boolean } & CallOptions = {}): Promise<Question[]> {
    const { signal, ...rest } = options;
    return (await this.#connection.call("listApprovals", rest, signal)).approvals;
  }

  /** The oldest that waits, as soon as there is one. */
  async wait(options: { readonly sandbox?: string } & CallOptions = {}): Promise<Question> {
    refuseUnknown("approvals.wait", options, ["sandbox", "signal"]);
    const { sandbox, signal } = options;
    const isMeant = (question: Question): boolean =>
      question.state === "waiting" && (sandbox === undefined || question.sandbox === sandbox || question.sandboxName === sandbox);
    const found = await untilOver(this.#connection, {
      look: async () => (await this.list()).findLast(isMeant),
      concerns: ({ type }) => type.startsWith("approval.") || type.startsWith("promotion."),
      isOver: (question) => question !== undefined,
      signal,
    });
    return found as Question;
  }

  /** Allows exactly this, once; with `always` the narrow rule that the question shows is added, too. */
  async approve(question: Question | string, options: { readonly always?: boolean } & CallOptions = {}): Promise<Question> {
    refuseUnknown("approvals.approve", options, ["always", "signal"]);
    return this.#answer(question, options.always === true ? "always" : "once", options.signal);
  }

  /** Refuses it. */
  async deny(question: Question | string, options: CallOptions = {}): Promise<Question> {
    refuseUnknown("approvals.deny", options, ["signal"]);
    return this.#answer(question, "deny", options.signal);
  }

  async #answer(question: Question | string, answer: "once" | "always" | "deny", signal: AbortSignal | undefined): Promise<Question> {
    const { approver, caller } = this.#connection.platform;
    if (approver === undefined) {
      throw new VivariumError("unauthorized", "Only a person may answer a question.", {
        remedy: "Give a person's token: `new Vivarium({ approver })`, or VIV_APPROVER_TOKEN.",
      });
    }
    const approval = typeof question === "string" ? question : question.id;
    const env = caller.env === undefined ? {} : { env: caller.env };
    return this.#connection.call("answerApproval", { approval, answer, approver, ...env }, signal);
  }
}
