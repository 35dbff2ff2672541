import { command } from "../command.ts";
import type { Command } from "../../../base/schema/command.ts";
import type { Process } from "../../../base/schema/process.ts";
import type { Client } from "../../client/client.ts";
import type { Screen } from "../screen.ts";
import { ago, bytes, duration } from "../text.ts";
import { usageError } from "../values.ts";
import { shellLine } from "../../../base/schema/shell-words.ts";

function stateOf(entry: Command): string {
  if (entry.running) return "running";
  if (entry.end === null) return "unknown";
  return entry.end.cause === "exit" ? `exit ${entry.end.exitCode}` : entry.end.cause;
}

/** One that has ended has no arguments any more; as other programs of this kind do, its short name stands in brackets. */
function lineOf({ command: words, name }: Process): string {
  return words.length === 0 ? `[${name}]` : shellLine(words);
}

async function showProcesses(client: Client, sandbox: string, screen: Screen, json: boolean): Promise<void> {
  const answer = await client.call("listProcesses", { sandbox });
  if (json) return screen.json(answer);
  if (answer.processes.length === 0) return screen.say("Nothing runs.");
  screen.table(answer.processes, [
    { title: "PID", value: ({ pid }) => String(pid), right: true },
    { title: "PARENT", value: ({ parent }) => (parent === 0 ? "" : String(parent)), right: true },
    { title: "STATE", value: ({ state }) => state, paint: (cell, { state }) => (state === "running" ? screen.paint("green", cell) : cell) },
    { title: "STARTED", value: ({ startedAt }) => ago(startedAt) },
    { title: "CPU", value: ({ cpuMs }) => duration(cpuMs), right: true },
    { title: "MEMORY", value: ({ memoryBytes }) => bytes(memoryBytes), right: true },
    { title: "COMMAND", value: lineOf, shrinks: true },
  ]);
  if (answer.more) screen.say(`These are the first ${answer.processes.length}; there are more.`);
}

export default command({
  name: "ps",
  summary: "List the commands or the processes of a sandbox",
  examples: [
    ["viv ps try", "what runs now"],
    ["viv ps --all try", "what ran, too, with exit codes"],
    ["viv ps --processes try", "every process inside, also those that commands left behind"],
  ],
  options: {
    all: { type: "flag", short: "a", summary: "Those that ended, too" },
    processes: { type: "flag", short: "p", summary: "Processes instead of commands" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox", without: "`viv ls` lists sandboxes." }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    if (options.processes && options.all) throw usageError("--all is for commands: a process that ended is not there any more.");
    if (options.processes) return showProcesses(await client(), sandbox, screen, json);
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
