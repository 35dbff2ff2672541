/** Questions answered on the terminal as they come: one key each. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { Question } from "../../base/schema/question.ts";
import type { InputOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { follow } from "./follow.ts";
import { Keys } from "./keys.ts";
import { definedOnly } from "./defined-only.ts";
import { paintVerdict } from "./policy-options.ts";
import { riskText } from "./promotion-view.ts";
import { shortId } from "./references.ts";
import type { Screen } from "./screen.ts";
import type { WatchContext } from "./watch-experiment.ts";
import { clean, cleanPath, until } from "./text.ts";

type Answer = InputOf<"answerApproval">["answer"];

/** A key that was meant for the question before must not answer this one. */
export const UNREAD_MS = 300;
const LOOK_AGAIN_MS = 1000;

/** Until the person quits. */
export async function answerAsTheyCome(around: WatchContext, approver: string): Promise<void> {
  const { client, screen } = around;
  const quitting = new AbortController();
  const { signal } = quitting;
  const keys = new Keys(process.stdin, () => quitting.abort());
  const seen = new Set<string>();
  const look = async (): Promise<Question[]> => (await client.call("listApprovals", { all: false })).approvals;
  const concerns = ({ type }: VivEvent): boolean => type === "approval.asked";
  const states = follow({ ...around, say: (line) => screen.say(line) }, { look, concerns, isOver: () => false, signal });
  screen.say(screen.paintRemark("dim", "Questions are shown as they come; q ends it."));
  try {
    for await (const waiting of states) {
      for (const question of waiting.toReversed()) {
        if (seen.has(question.id) || signal.aborted) continue;
        seen.add(question.id);
        await answerOne(around, keys, question, { approver, signal });
      }
    }
  } finally {
    quitting.abort();
    keys.end();
  }
}

async function answerOne(
  around: WatchContext,
  keys: Keys,
  question: Question,
  { approver, signal }: { readonly approver: string; readonly signal: AbortSignal },
): Promise<void> {
  const { client, screen } = around;
  const print = (line: string): void => screen.print(line);
  showQuestion(print, screen, question);
  const over = new AbortController();
  void goneMeanwhile(client, question.id, over);
  try {
    await delay(UNREAD_MS);
    for (;;) {
      screen.say(`${choices(question)}   [q]uit`);
      const key = await keys.next(AbortSignal.any([over.signal, signal]));
      if (signal.aborted) return;
      if (key === undefined) return screen.say("It was answered elsewhere, or its deadline has passed.");
      if (key === "s") return screen.say("Left as it is.");
      if (key === "e") await explain(around, question, print);
      const answer = answerTo(question, key);
      if (answer !== undefined) return await send(around, question, answer, approver, print);
    }
  } finally {
    over.abort();
  }
}

async function goneMeanwhile(client: Client, approval: string, over: AbortController): Promise<void> {
  while (!over.signal.aborted) {
    try {
      if ((await client.call("inspectApproval", { approval })).state !== "waiting") over.abort();
    } catch {
      // A fault that hides the question also meets the answer, and is reported there.
    }
    await delay(LOOK_AGAIN_MS, undefined, { signal: over.signal }).catch(() => undefined);
  }
}

type Say = (line: string) => void;
type Painter = Pick<Screen, "paint">;

export function showQuestion(say: Say, screen: Painter, { id, sandboxName, kind, target, reason, deadline, risks = [] }: Question): void {
  say(`${screen.paint("bold", shortId(id))}  ${sandboxName ?? "this machine"} asks about a ${kind}:`);
  say(`  ${screen.paint("cyan", cleanPath(target))}`);
  say(
    `  ${clean(reason)} ${deadline === null ? "It waits as long as the sandbox is there." : `Denied ${until(deadline)} if no person answers.`}`,
  );
  for (const risk of risks) say(`  ${screen.paint("yellow", riskText(risk))}`);
}

export function choices({ always }: Question): string {
  const rule = always === null ? "" : `[a]lways, by the rule \`${cleanPath(always)}\`   `;
  return `  [o]nce   ${rule}[d]eny   [e]xplain   [s]kip`;
}

/** What a key answers. */
export function answerTo({ always }: Question, key: string): Answer | undefined {
  if (key === "a") return always === null ? undefined : "always";
  return key === "o" ? "once" : key === "d" ? "deny" : undefined;
}

export async function explain(
  { client, screen }: { client: Client; screen: Painter },
  { sandbox, action, rule, reason }: Question,
  say: Say,
): Promise<void> {
  if (sandbox === null || action === undefined) return say(`  ${clean(rule ?? "no rule")}: ${clean(reason)}`);
  const { parts } = await client.call("explainPolicy", { sandbox, action }).catch((error: unknown) => {
    // A sandbox that is gone meanwhile has no policy to explain; the question is still there.
    say(`  ${clean(VivError.from(error).message)}`);
    return { parts: [] };
  });
  for (const { verdict, command, rule: decided, reason: why } of parts)
    say(`  ${paintVerdict(screen, verdict.padEnd(5), verdict)}  ${clean(command)}  (${clean(decided)}) ${clean(why)}`);
}

export async function send(
  { client, env }: WatchContext,
  { id, kind }: Question,
  answer: Answer,
  approver: string,
  say: Say,
): Promise<void> {
  try {
    // A yes continues a promotion, and its checks run in the environment of the person who answered.
    const own = kind === "promotion" ? { env: definedOnly(env) } : {};
    const { reason } = await client.call("answerApproval", { approval: id, answer, approver, ...own });
    if (kind === "promotion" && answer !== "deny") say(clean(reason));
    say(`${shortId(id)} is ${answer === "deny" ? "denied" : `approved, ${answer}`}.`);
  } catch (error) {
    if (!(error instanceof VivError) || error.code !== "illegal_transition") throw error;
    say(clean(error.message));
  }
}
