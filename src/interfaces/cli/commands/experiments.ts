import { command } from "../command.ts";
import { LISTING_OPTIONS, listingInput } from "../listing.ts";
import type { Experiment } from "../../../base/schema/experiment.ts";
import { shortId } from "../references.ts";
import type { Screen } from "../screen.ts";
import { ago } from "../text.ts";

function paintState(screen: Screen, cell: string, { state, winner }: Experiment): string {
  if (state === "done") return winner === null ? cell : screen.paint("green", cell);
  if (state === "failed") return screen.paint("red", cell);
  return screen.paint(state === "cancelled" ? "dim" : "yellow", cell);
}

function winnerText({ attempts, winner }: Experiment): string {
  return attempts.find(({ index }) => index === winner)?.name ?? "-";
}

export default command({
  name: "experiments",
  summary: "List experiments",
  examples: [
    ["viv experiments", "the latest ones"],
    ["viv experiments --all --json", "all of them, for programs"],
  ],
  options: LISTING_OPTIONS,
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const { experiments } = await (await client()).call("listExperiments", listingInput(options, cwd));
    if (json) return screen.json({ experiments });
    if (options.quiet) {
      for (const { id } of experiments) screen.print(id);
      return;
    }
    if (experiments.length === 0) return screen.say("No experiments. Start one with `viv try`.");
    const several = new Set(experiments.map((each) => each.project)).size > 1;
    screen.table(experiments, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "WHEN", value: ({ createdAt }) => ago(createdAt) },
      ...(several ? [{ title: "PROJECT", value: (each: Experiment) => each.project, shrinks: true }] : []),
      { title: "STATE", value: ({ state }) => state, paint: (cell, each) => paintState(screen, cell, each) },
      { title: "ATTEMPTS", value: ({ attempts }) => String(attempts.length), right: true },
      { title: "WINNER", value: winnerText },
      { title: "PROMOTED", value: ({ promotion }) => (promotion === null ? "-" : shortId(promotion)) },
      { title: "RESULT", value: ({ reason }) => reason ?? "", shrinks: true },
    ]);
  },
});
