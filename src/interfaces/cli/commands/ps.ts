import { command } from "../command.ts";
import type { Command } from "../../../base/schema/command.ts";
import { ago, duration } from "../text.ts";
import { shellLine } from "../../../base/schema/shell-words.ts";

function stateOf(entry: Command): string {
  if (entry.running) return "running";
  if (entry.end === null) return "unknown";
  return entry.end.cause === "exit" ? `exit ${entry.end.exitCode}` : entry.end.cause;
}

export default command({
  name: "ps",
  summary: "List the commands of a sandbox",
  examples: [
    ["viv ps try", "what runs now"],
    ["viv ps --all try", "what ran, too, with exit codes"],
  ],
  options: { all: { type: "flag", short: "a", summary: "Those that ended, too" } },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox", without: "`viv ls` lists sandboxes." }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const { commands } = await (await client()).call("listCommands", { sandbox, all: options.all });
    if (json) return screen.json({ commands });
    if (commands.length === 0) return screen.say(options.all ? "No commands yet." : "Nothing runs. `viv ps --all` shows what ran.");
    screen.table(commands, [
      { title: "ID", value: (entry) => entry.id },
      { title: "STATE", value: stateOf, paint: (cell, entry) => (entry.running ? screen.paint("green", cell) : cell) },
      { title: "STARTED", value: (entry) => ago(entry.startedAt) },
      { title: "TIME", value: (entry) => duration(entry.end?.wallMs ?? Date.now() - Date.parse(entry.startedAt)), right: true },
      { title: "USER", value: (entry) => entry.user },
      {
        title: "COMMAND",
        value: (entry) => `${entry.service === undefined ? "" : `(service ${entry.service}) `}${shellLine(entry.command)}`,
        shrinks: true,
      },
    ]);
  },
});
