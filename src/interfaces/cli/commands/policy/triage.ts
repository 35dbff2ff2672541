import { command } from "../../command.ts";
import { asked, commandAction, POLICY_OPTIONS } from "../../policy-options.ts";

export default command({
  name: "policy triage",
  summary: "Say whether to run a command at once, try it in a sandbox, or only propose it",
  examples: [["viv policy triage -- 'npm install left-pad && npm test'", "which way, why, and what a sandbox would cost"]],
  options: POLICY_OPTIONS,
  positionals: [{ name: "COMMAND", summary: "A shell line in quotes, or a program and its arguments", rest: "command-line" }],
  async run({ options, rest, json, screen, cwd, client }) {
    const found = await (await client()).call("triageAction", { ...asked(options, cwd), action: commandAction(rest) });
    if (json) return screen.json(found);
    screen.print(found.way);
    for (const reason of found.reasons) screen.print(`  ${reason}`);
    const { seconds, memoryMib, diskMib } = found.cost;
    screen.print(`  In a sandbox about ${seconds} s, ${memoryMib} MiB of memory and ${diskMib} MiB of disk.`);
  },
});
