/** Conversations made up for tests: of a million tokens, or of nothing but odd things. */
import type { Logger } from "../../src/base/host/log.ts";
import type { Store } from "../../src/base/store/store.ts";
import { Conversations, type SaidRecord } from "../../src/work/conversations/conversations.ts";
import { ExtractiveSummarizer } from "../../src/work/conversations/extractive-summarizer.ts";
import { LocalEmbedder } from "../../src/work/conversations/local-embedder.ts";
import { Randomness } from "./randomness.ts";

const SUBJECTS = ["the parser", "this test", "the build", "a migration", "the login page", "its cache", "the proxy", "the config"];
const VERBS = ["fails on", "reads", "writes", "depends on", "was changed by", "does not know", "waits for", "breaks"];
const OBJECTS = ["empty input", "the database", "src/index.ts", "an old session", "Unicode names", "two threads", "the network", "line 42"];
const SCRIPTS = ["日本語のテキスト。", "Ünïcödé wörter. ", "😀👩‍👩‍👧 ", "\x1b[31mred\x1b[0m \0 ", "\ud800 ", "a".repeat(50), "\n\n\n"];

const quiet = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Logger;

export function conversationsOn(store: Store): Conversations {
  return new Conversations({ store, log: quiet, embedder: new LocalEmbedder(), summarizer: new ExtractiveSummarizer() });
}

function sentences(random: Randomness, count: number): string {
  let text = "";
  for (let index = 0; index < count; index += 1)
    text += `${random.of(SUBJECTS)} ${random.of(VERBS)} ${random.of(OBJECTS)} ${random.below(1000)}.${random.below(4) === 0 ? "\n" : " "}`;
  return text;
}

/** Turns as agents have them: a text, some calls, their results in any order, sometimes a person or a decision. */
export function* madeUp(
  random: Randomness,
  turns: number,
  { long = 40 }: { readonly long?: number } = {},
): Generator<SaidRecord, undefined> {
  yield { role: "task", kind: "text", text: `Task: ${sentences(random, 1 + random.below(4))}` };
  for (let turn = 0; turn < turns; turn += 1) {
    yield { role: "agent", kind: "text", text: sentences(random, 1 + random.below(6)) };
    const calls = Array.from({ length: random.below(4) }, (_, index) => `call-${turn}-${index}`);
    for (const callId of calls)
      yield { role: "agent", kind: "tool-call", tool: "bash", callId, text: JSON.stringify({ command: sentences(random, 1) }) };
    while (calls.length > 0) {
      const [callId = ""] = calls.splice(random.below(calls.length), 1);
      const text = random.below(9) === 0 ? random.of(SCRIPTS).repeat(random.below(200)) : sentences(random, random.below(long));
      yield { role: "tool", kind: "tool-result", tool: "bash", callId, text };
    }
    if (random.below(12) === 0) yield { role: "person", kind: "text", text: sentences(random, 2) };
    if (random.below(25) === 0) yield { role: "agent", kind: "decision", text: `Decided: ${sentences(random, 1)}` };
  }
  return undefined;
}

/** Calls that are never answered, answers to nothing, one id for many, and results that come very late. */
export function* odd(random: Randomness, count: number): Generator<SaidRecord> {
  for (let index = 0; index < count; index += 1) {
    const callId = `c${random.below(5)}`;
    const text = random.of(SCRIPTS).repeat(random.below(60));
    const kind = random.of(["text", "tool-call", "tool-result", "tool-result", "decision"] as const);
    const isText = kind === "text" || kind === "decision";
    yield isText ? { role: "agent", kind, text } : { role: "tool", kind, callId, tool: "t", text };
  }
}
