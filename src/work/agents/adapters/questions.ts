/** What an agent asks before it acts. One question of an agent may be about several things: all of them must be allowed. */
import type { PolicyAction } from "../../../base/schema/policy.ts";
import type { Heard } from "../adapter.ts";
import { entry, withEntry, without, type Entries } from "./wire.ts";

/** A part of `PolicyAction`, as plain JSON. */
export type AskedAction =
  | { readonly kind: "tool"; readonly tool: string; readonly argument: string }
  | { readonly kind: "tool"; readonly tool: string }
  | { readonly kind: "path"; readonly path: string; readonly access: "delete" };

export type Question = {
  readonly asked: readonly AskedAction[];
  /** Positions of what is not allowed yet. */
  readonly open: readonly number[];
  readonly call: string | null;
  /** What the answer needs. */
  readonly reply: Entries<string>;
};

/** By the agent's id of the question. */
export type Questions = Entries<Question>;

/** Questions at once, things that one is about, and characters of one and of all: what is beyond is denied unread. */
const MOST_QUESTIONS = 64;
const MOST_ASKED = 64;
const MOST_CHARACTERS = 64 * 1024;
const MOST_CHARACTERS_OF_ALL = 256 * 1024;
const TOO_MANY = "Too many questions wait for an answer already.";
const TOO_LONG = "It is too long to be judged; write a script and run that.";

export function question(asked: readonly AskedAction[], call: string | null, reply: Entries<string> = {}): Question {
  return { asked, open: asked.map((_, index) => index), call, reply };
}

/** Why it is not even put to the policy. */
export function refusalOf(questions: Questions, { asked }: Question): string | undefined {
  if (asked.length > MOST_ASKED) return `It is about more than ${MOST_ASKED} things; do them in several steps.`;
  return refusalOfMore(questions, asked);
}

/** The same for what is asked in another shape. */
export function refusalOfMore(waiting: Entries<unknown>, asked: unknown): string | undefined {
  if (Object.keys(waiting).length >= MOST_QUESTIONS) return TOO_MANY;
  const characters = JSON.stringify(asked).length;
  if (characters > MOST_CHARACTERS) return TOO_LONG;
  return JSON.stringify(waiting).length + characters > MOST_CHARACTERS_OF_ALL ? TOO_MANY : undefined;
}

export function withQuestion(questions: Questions, id: string, asked: Question): Questions {
  return withEntry(questions, id, asked);
}

/** The requests of one question, or of all. */
export function requestsOf(questions: Questions, only?: string): readonly Heard[] {
  return Object.entries(questions)
    .filter(([id]) => only === undefined || id === only)
    .flatMap(([id, { asked, open, call }]) =>
      open.flatMap((index) => {
        const action = asked[index];
        return action === undefined ? [] : [{ request: `${index} ${id}`, action: action satisfies PolicyAction, call }];
      }),
    );
}

/** What is left once one thing is decided; `settled` if that answers the whole question. */
export function decided(
  questions: Questions,
  request: string,
  allowed: boolean,
): { left: Questions; settled?: { id: string; question: Question } } {
  const at = request.indexOf(" ");
  const [index, id] = [Number(request.slice(0, at)), request.slice(at + 1)];
  const found = entry(questions, id);
  if (found === undefined || !found.open.includes(index)) return { left: questions };
  const open = found.open.filter((each) => each !== index);
  if (allowed && open.length > 0) return { left: withEntry(questions, id, { ...found, open }) };
  return { left: without(questions, id), settled: { id, question: found } };
}

/** Calls that may run, with the one of a question that was answered by yes. */
export function withAllowed(allowed: Entries<true>, settled: { readonly question: Question } | undefined, isYes: boolean): Entries<true> {
  const call = settled?.question.call ?? null;
  return isYes && call !== null ? withEntry(allowed, call, true) : allowed;
}
