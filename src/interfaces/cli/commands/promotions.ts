import { command } from "../command.ts";
import { LISTING_OPTIONS, listingInput } from "../listing.ts";
import type { Promotion } from "../../../base/schema/promotion.ts";
import { stageReached } from "../promotion-view.ts";
import { shortId } from "../references.ts";
import type { Screen } from "../screen.ts";
import { ago } from "../text.ts";

function paintState(screen: Screen, cell: string, { state, pending }: Promotion): string {
  if (pending || state === "failed") return screen.paint("red", cell);
  if (state === "applied") return screen.paint("green", cell);
  return state === "undone" ? screen.paint("dim", cell) : screen.paint("yellow", cell);
}

/** "waiting: package.json runs by itself". */
function stateText({ kind, state, reason, pending }: Promotion): string {
  const what = pending ? "interrupted" : kind === "undo" && state === "applied" ? "undo done" : state;
  return reason === null || state === "applied" || state === "undone" ? what : `${what}: ${reason}`;
}

function sourceText({ kind, undoes, sandboxName, sandbox }: Promotion): string {
  if (kind === "undo") return undoes === null ? "undo" : `undo of ${shortId(undoes)}`;
  return sandboxName ?? sandbox ?? "-";
}

export default command({
  name: "promotions",
  summary: "Show where each change stands on its way into reality",
  examples: [
    ["viv promotions", "the latest ones"],
    ["viv promotions --all --project .", "all of this project"],
    ["viv promotions --json", "with plans, stages and their checks, for programs"],
  ],
  options: LISTING_OPTIONS,
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const { promotions } = await (await client()).call("listPromotions", listingInput(options, cwd));
    if (json) return screen.json({ promotions });
    if (options.quiet) {
      for (const { id } of promotions) screen.print(id);
      return;
    }
    if (promotions.length === 0) return screen.say("There are no promotions. `viv promote SANDBOX` brings a change into the project.");
    const several = new Set(promotions.map((each) => each.project)).size > 1;
    screen.table(promotions, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "WHEN", value: ({ createdAt }) => ago(createdAt) },
      ...(several ? [{ title: "PROJECT", value: (each: Promotion) => each.project, shrinks: true }] : []),
      { title: "SANDBOX", value: sourceText },
      { title: "FILES", value: ({ plan }) => (plan === null ? "-" : String(plan.files)), right: true },
      { title: "STAGE", value: stageReached },
      { title: "STATE", value: stateText, shrinks: true, paint: (cell, each) => paintState(screen, cell, each) },
    ]);
  },
});
