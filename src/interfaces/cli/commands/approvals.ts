import type { Client } from "../../client/client.ts";
import type { Question } from "../../../base/schema/question.ts";
import { answerAsTheyCome, showQuestion } from "../answering.ts";
import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { printPlan } from "../promotion-view.ts";
import { findQuestion, shortId } from "../references.ts";
import type { Screen } from "../screen.ts";
import { ago, clean, cleanPath } from "../text.ts";
import { usageError } from "../values.ts";

/** A promotion says what is risky in it. */
function whyText({ reason, risks = [] }: Question): string {
  const [first] = risks;
  if (first === undefined) return clean(reason);
  const more = risks.length > 1 ? ` and ${risks.length - 1} more` : "";
  return `${cleanPath(first.path)} (${first.kind})${more}: ${clean(reason)}`;
}

/** Everything that there is to see before an answer. */
async function show(client: Client, screen: Screen, reference: string, json: boolean): Promise<void> {
  const question = await client.call("inspectApproval", { approval: await findQuestion(client, reference) });
  const isPromotion = question.kind === "promotion";
  const plan = isPromotion ? (await client.call("inspectPromotion", { promotion: question.id })).plan : null;
  if (json) return screen.json({ ...question, ...(plan === null ? {} : { plan }) });
  // Its plan has the risks, too.
  showQuestion((line) => screen.print(line), screen, { ...question, ...(plan === null ? {} : { risks: [] }) });
  if (plan !== null) printPlan(screen, plan);
  if (question.state !== "waiting") return screen.say(`It is ${question.state}.`);
  const id = shortId(question.id);
  screen.say(`\nAnswer with: viv approve ${id}, or viv deny ${id}`);
}

export default command({
  name: "approvals",
  summary: "Show questions that wait for a person, or answer them as they come",
  details:
    "The list includes promotions that wait. Answer with the command shown, or with one key each with --watch. A question without an answer by its deadline is denied; the action can be tried again. A promotion waits as long as its sandbox is there.",
  examples: [
    ["viv approvals", "what waits, promotions too"],
    ["viv approvals prm4d5e6f", "one of them in full: of a promotion every file and risk"],
    ["viv approvals --watch", "answer each question as it comes: once, always, deny, explain"],
    ["viv approvals --all", "what was answered, too"],
  ],
  options: {
    all: { type: "flag", short: "a", summary: "Also those that were answered" },
    watch: { type: "flag", short: "w", summary: "Stay, and answer questions on this terminal with a key each" },
    quiet: { type: "flag", short: "q", summary: "Print ids only" },
  },
  positionals: [{ name: "APPROVAL", summary: "Show this one in full: its id, or the beginning", optional: true }],
  async run({ options, positionals: [reference], json, screen, env, client: connect }) {
    if (options.watch) {
      if (json) throw usageError("--watch is for a person; `viv events --json` tells programs of questions.");
      const approver = approverToken(env);
      if (!process.stdin.isTTY) throw usageError("--watch answers on a terminal.", "Use `viv approve` and `viv deny`.");
      return answerAsTheyCome({ client: await connect(), screen, env }, approver);
    }
    const client = await connect();
    if (reference !== undefined) return show(client, screen, reference, json);
    const { approvals } = await client.call("listApprovals", { all: options.all });
    if (json) return screen.json({ approvals });
    if (options.quiet) {
      for (const { id } of approvals) screen.print(id);
      return;
    }
    if (approvals.length === 0) return screen.say("Nothing waits for an answer.");
    screen.table(approvals, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "ASKED", value: ({ askedAt }) => ago(askedAt) },
      { title: "SANDBOX", value: ({ sandboxName }) => sandboxName ?? "-" },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "STATE", value: ({ state }) => state },
      { title: "WHAT", value: ({ target }) => cleanPath(target), shrinks: true },
      { title: "WHY", value: whyText, shrinks: true },
      { title: "ALWAYS", value: ({ always }) => (always === null ? "-" : cleanPath(always)), shrinks: true },
      { title: "ANSWER", value: ({ id, state }) => (state === "waiting" ? `viv approve ${shortId(id)}` : "") },
    ]);
  },
});
