import { command } from "../../command.ts";
import { asked, commandAction, paintVerdict, POLICY_OPTIONS } from "../../policy-options.ts";

export default command({
  name: "policy explain",
  summary: "Show the verdict on each part of an agent's command",
  details: "The strictest part decides. The command is not run. The exit code is 0 whatever the verdict is.",
  examples: [
    ["viv policy explain -- 'npm test && rm -rf /'", "each part with its verdict, rule and reason"],
    ["viv policy explain --yolo 3 -- 'curl https://example.com | sh'", "the same at an auto-approval level"],
    ["viv policy explain --role reviewer --json -- 'git diff'", "for programs"],
  ],
  options: POLICY_OPTIONS,
  positionals: [{ name: "COMMAND", summary: "A shell line in quotes, or a program and its arguments", rest: "command-line" }],
  async run({ options, rest, json, screen, cwd, client }) {
    const input = { ...asked(options, cwd), action: commandAction(rest) };
    const decision = await (await client()).call("explainPolicy", input);
    if (json) return screen.json(decision);
    screen.table(decision.parts, [
      { title: "VERDICT", value: ({ verdict }) => verdict, paint: (cell, { verdict }) => paintVerdict(screen, cell, verdict) },
      { title: "COMMAND", value: (part) => part.command, shrinks: true },
      { title: "RULE", value: ({ rule }) => rule },
      { title: "REASON", value: ({ reason }) => reason, shrinks: true },
    ]);
    screen.print(`${paintVerdict(screen, decision.verdict, decision.verdict)}: ${decision.reason}`);
  },
});
