import type { Client } from "../../client/client.ts";
import type { Approval } from "../../schema/approval.ts";
import { VivError } from "../../schema/errors.ts";
import type { Promotion } from "../../schema/promotion.ts";
import { answerAsTheyCome } from "../answering.ts";
import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { shortId } from "../references.ts";
import { ago, clean, cleanPath } from "../text.ts";
import { usageError } from "../values.ts";

interface Row {
  readonly id: string;
  readonly askedAt: string;
  readonly sandboxName: string | null;
  readonly kind: string;
  readonly state: string;
  readonly what: string;
  readonly why: string;
  readonly always: string | null;
  readonly answer: string;
}

function questionRow({ id, askedAt, sandboxName, kind, state, target, reason, always }: Approval): Row {
  const answer = state === "waiting" ? `viv approve ${shortId(id)}` : "";
  return { id, askedAt, sandboxName, kind, state, what: target, why: reason, always, answer };
}

/** A promotion waits as a whole, or for the approval of its next stage. */
function isWaiting({ state, stages }: Promotion): boolean {
  return state === "waiting" || (state === "applied" && stages.some((stage) => stage.state === "waiting"));
}

function promotionRow({ id, createdAt, sandboxName, plan, stages, reason }: Promotion): Row {
  const stage = stages.find(({ state }) => state === "waiting");
  const files = plan?.files ?? 0;
  return {
    id,
    askedAt: createdAt,
    sandboxName,
    kind: "promotion",
    state: "waiting",
    what: `${files} ${files === 1 ? "file" : "files"}${stage === undefined ? "" : ` to ${stage.name}`}`,
    why: reason ?? stage?.reason ?? "It needs an approval.",
    always: null,
    answer: `viv promote ${shortId(id)} --approve`,
  };
}

/** A machine that can't promote anything has none. */
async function promotionsOf(client: Client): Promise<Promotion[]> {
  try {
    return (await client.call("listPromotions", { all: true })).promotions;
  } catch (error) {
    if (error instanceof VivError && error.code === "unsupported") return [];
    throw error;
  }
}

export default command({
  name: "approvals",
  summary: "Show what waits for a person's answer, or answer it as it comes",
  details:
    "Answer with the command shown, or with one key each with --watch. What nobody answers by its deadline is denied; the action can be tried again.",
  examples: [
    ["viv approvals", "what waits, promotions too"],
    ["viv approvals --watch", "answer each question as it comes: once, always, deny, explain"],
    ["viv approvals --all", "what was answered, too"],
  ],
  options: {
    all: { type: "flag", short: "a", summary: "Also those that were answered" },
    watch: { type: "flag", short: "w", summary: "Stay, and answer questions on this terminal with a key each" },
    quiet: { type: "flag", short: "q", summary: "Print ids only" },
  },
  positionals: [],
  async run({ options, json, screen, env, client: connect }) {
    if (options.watch) {
      if (json) throw usageError("--watch is for a person; `viv events --json` tells programs of questions.");
      const approver = approverToken(env);
      if (!process.stdin.isTTY) throw usageError("--watch answers on a terminal.", "Use `viv approve` and `viv deny`.");
      return answerAsTheyCome({ client: await connect(), screen, env }, approver);
    }
    const client = await connect();
    const { approvals } = await client.call("listApprovals", { all: options.all });
    const promotions = (await promotionsOf(client)).filter(isWaiting);
    const rows = [...approvals.map(questionRow), ...promotions.map(promotionRow)];
    if (json) return screen.json({ approvals, promotions: promotions.map(promotionRow) });
    if (options.quiet) {
      for (const { id } of rows) screen.print(id);
      return;
    }
    if (rows.length === 0) return screen.say("Nothing waits for an answer.");
    screen.table(rows, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "ASKED", value: ({ askedAt }) => ago(askedAt) },
      { title: "SANDBOX", value: ({ sandboxName }) => sandboxName ?? "-" },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "STATE", value: ({ state }) => state },
      { title: "WHAT", value: ({ what }) => cleanPath(what), shrinks: true },
      { title: "WHY", value: ({ why }) => clean(why), shrinks: true },
      { title: "ALWAYS", value: ({ always }) => (always === null ? "-" : cleanPath(always)), shrinks: true },
      { title: "ANSWER", value: ({ answer }) => answer },
    ]);
  },
});
