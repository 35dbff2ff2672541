import { command } from "../command.ts";
import { clean, plural } from "../text.ts";

export default command({
  name: "prune",
  summary: "Remove finished sandboxes, expired snapshots and leftovers",
  examples: [
    ["viv prune", "tidy up what is finished"],
    ["viv prune --all", "remove running sandboxes too"],
  ],
  options: { all: { type: "flag", short: "a", summary: "Running sandboxes too" } },
  positionals: [],
  async run({ options, json, screen, client }) {
    const report = await screen.during("Tidying up", (await client()).call("prune", { all: options.all }));
    if (json) return screen.json(report);
    const counts = [plural(report.sandboxes, "sandbox", "sandboxes"), plural(report.snapshots, "snapshot"), plural(report.bases, "base")];
    screen.print(`Removed ${counts.join(", ")}.`);
    for (const leftover of report.leftovers) screen.print(`  ${clean(leftover)}`);
  },
});
