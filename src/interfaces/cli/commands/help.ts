import { command } from "../command.ts";
import { printCommandHelp } from "../command-help.ts";
import { EXIT_CODES, printExitCodes, printGroup, printOverview } from "../help.ts";
import { nearest } from "../nearest.ts";
import { commandNames, loadAll, loadCommand } from "../registry.ts";
import { usageError } from "../values.ts";

export default command({
  name: "help",
  summary: "Say how viv or one of its commands is used",
  examples: [
    ["viv help", "all commands"],
    ["viv help exec", "one command, with examples"],
    ["viv help exit-codes", "what exit codes mean"],
  ],
  options: {},
  positionals: [{ name: "COMMAND", summary: "A command, or exit-codes", optional: true, rest: "values", completes: "viv-command" }],
  async run({ rest, json, screen }) {
    const name = rest.join(" ");
    const all = await loadAll();
    if (json) return screen.json({ commands: all, exitCodes: Object.fromEntries(EXIT_CODES) });
    if (name === "") return printOverview(screen);
    if (name === "exit-codes") return printExitCodes(screen);
    const found = await loadCommand(name);
    if (found) return printCommandHelp(screen, found);
    const below = all.filter((each) => each.name.startsWith(`${name} `));
    if (below.length > 0) return printGroup(screen, name, below);
    const near = nearest(name, commandNames());
    throw usageError(
      `There is no command ${JSON.stringify(name)}.${near === undefined ? "" : ` Did you mean \`viv help ${near}\`?`}`,
      "`viv help` lists the commands.",
    );
  },
});
