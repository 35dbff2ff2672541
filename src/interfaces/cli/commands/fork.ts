import { command } from "../command.ts";
import { AUTONOMY_OPTIONS, autonomy } from "../policy-options.ts";
import { usageError } from "../values.ts";
import { warnIfUnwalled } from "./create.ts";

export default command({
  name: "fork",
  summary: "Make new sandboxes from the state of one",
  examples: [
    ["viv fork try", "a second sandbox that starts where try stands now"],
    ["viv fork try --count 3", "three of them"],
    ["viv fork try --snapshot before-upgrade --name other", "from a snapshot, with a name"],
  ],
  options: {
    snapshot: {
      type: "text",
      short: "s",
      value: "SNAPSHOT",
      completes: "snapshot",
      summary: "Start from this snapshot instead of the live state",
    },
    count: { type: "integer", short: "c", value: "N", summary: "How many; 1 if left out" },
    name: { type: "list", short: "n", value: "NAME", summary: "Name of a fork; may be given once for each" },
    ...AUTONOMY_OPTIONS,
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const count = options.count ?? Math.max(1, options.name.length);
    if (options.name.length > count) throw usageError(`There are ${options.name.length} names for ${count} forks.`);
    const input = {
      sandbox,
      count,
      ...autonomy(options),
      ...(options.snapshot === undefined ? {} : { snapshot: options.snapshot }),
      ...(options.name.length === 0 ? {} : { names: [...options.name] }),
    };
    const { sandboxes } = await screen.during("Forking", (await client()).call("forkSandbox", input));
    for (const fork of sandboxes) warnIfUnwalled(screen, fork);
    if (json) return screen.json({ sandboxes });
    for (const fork of sandboxes) screen.print(fork.name);
  },
});
