/** Questions answered on the terminal as they come: one key each. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import type { Approval } from "../schema/approval.ts";
import { VivError } from "../schema/errors.ts";
import type { VivEvent } from "../schema/event.ts";
import { follow } from "./follow.ts";
import { Keys } from "./keys.ts";
import { paintVerdict } from "./policy-options.ts";
import { shortId } from "./references.ts";
import type { Watching } from "./watch-experiment.ts";
import { clean, cleanPath, until } from "./text.ts";

/** A key that was meant for the question before must not answer this one. */
const UNREAD_MS = 300;
const LOOK_AGAIN_MS = 1000;

/** Until somebody quits. */
export async function answerAsTheyCome(around: Watching, approver: string): Promise<void> {
  const { client, screen } = around;
  const quitting = new AbortController();
  const { signal } = quitting;
  const keys = new Keys(process.stdin, () => quitting.abort());
  const seen = new Set<string>();
  const look = async (): Promise<Approval[]> => (await client.call("listApprovals", { all: false })).approvals;
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
  around: Watching,
  keys: Keys,
  question: Approval,
  { approver, signal }: { readonly approver: string; readonly signal: AbortSignal },
): Promise<void> {
  const { client, screen } = around;
  show(around, question);
  const over = new AbortController();
  void goneMeanwhile(client, question.id, over);
  try {
    await delay(UNREAD_MS);
    for (;;) {
      screen.say(choices(question));
      const key = await keys.next(AbortSignal.any([over.signal, signal]));
      if (signal.aborted) return;
      if (key === undefined) return screen.say("It was answered elsewhere, or nobody answered in time.\n");
      if (key === "s") return screen.say("Left as it is.\n");
      if (key === "e") await explain(around, question);
      const answer = key === "o" ? "once" : key === "d" ? "deny" : key === "a" && question.always !== null ? "always" : undefined;
      if (answer !== undefined) return await send(around, question, answer, approver);
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
      // Whatever keeps it from being looked at, the answer meets it too, and tells.
    }
    await delay(LOOK_AGAIN_MS, undefined, { signal: over.signal }).catch(() => undefined);
  }
}

function show({ screen }: Watching, { id, sandboxName, kind, target, reason, deadline }: Approval): void {
  screen.print(`${screen.paint("bold", shortId(id))}  ${sandboxName ?? "this machine"} asks about a ${kind}:`);
  screen.print(`  ${screen.paint("cyan", cleanPath(target))}`);
  screen.print(`  ${clean(reason)} Denied ${until(deadline)} if nobody answers.`);
}

function choices({ always }: Approval): string {
  const rule = always === null ? "" : `[a]lways, by the rule \`${cleanPath(always)}\`   `;
  return `  [o]nce   ${rule}[d]eny   [e]xplain   [s]kip   [q]uit`;
}

async function explain({ client, screen }: Watching, { sandbox, action, rule, reason }: Approval): Promise<void> {
  if (sandbox === null || action === undefined) return screen.print(`  ${clean(rule ?? "no rule")}: ${clean(reason)}`);
  const { parts } = await client.call("explainPolicy", { sandbox, action });
  for (const part of parts)
    screen.print(
      `  ${paintVerdict(screen, part.verdict.padEnd(5), part.verdict)}  ${clean(part.command)}  (${clean(part.rule)}) ${clean(part.reason)}`,
    );
}

async function send({ client, screen }: Watching, { id }: Approval, answer: "once" | "always" | "deny", approver: string): Promise<void> {
  try {
    await client.call("answerApproval", { approval: id, answer, approver });
    screen.print(`${shortId(id)} is ${answer === "deny" ? "denied" : `approved, ${answer}`}.\n`);
  } catch (error) {
    if (!(error instanceof VivError) || error.code !== "illegal_transition") throw error;
    screen.print(`${clean(error.message)}\n`);
  }
}
