import { VivError } from "../../../base/schema/errors.ts";
import { command } from "../command.ts";
import { plural } from "../text.ts";
import { usageError } from "../values.ts";

export default command({
  name: "rm",
  summary: "Throw sandboxes away, with their snapshots",
  examples: [
    ["viv rm try", "throw one away"],
    ["viv rm try-1 try-2", "throw several away"],
    ["viv rm --all", "throw all of them away"],
  ],
  options: {
    all: { type: "flag", short: "a", summary: "All sandboxes" },
    force: { type: "flag", short: "f", summary: "Also one that runs; this is always done, the option is for habit" },
  },
  positionals: [{ name: "SANDBOX", summary: "Ids or names", optional: true, rest: "values", completes: "sandbox" }],
  async run({ options, rest, json, screen, client }) {
    if (options.all === rest.length > 0)
      throw usageError(options.all ? "viv rm takes names or --all, not both." : "viv rm needs a SANDBOX, or --all.");
    const server = await client();
    const names = options.all ? (await server.call("listSandboxes", {})).sandboxes.map((sandbox) => sandbox.name) : [...new Set(rest)];
    const removed: string[] = [];
    const failures: VivError[] = [];
    const work = names.map(async (sandbox) => {
      try {
        await server.call("removeSandbox", { sandbox });
        removed.push(sandbox);
      } catch (error) {
        failures.push(VivError.from(error));
      }
    });
    await screen.during(`Removing ${plural(names.length, "sandbox", "sandboxes")}`, Promise.all(work));
    const [first, ...others] = failures;
    if (!json) {
      for (const name of removed) screen.print(name);
      for (const failure of others) screen.error(failure);
      if (names.length === 0) screen.say("There is nothing to remove.");
    }
    if (first) throw first;
    if (json) screen.json({ removed });
  },
});
