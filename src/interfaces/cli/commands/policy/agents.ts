import { command } from "../../command.ts";
import { asked, POLICY_OPTIONS } from "../../policy-options.ts";

export default command({
  name: "policy agents",
  summary: "Print text for AGENTS.md, made from the policy that is enforced",
  examples: [
    ["viv policy agents > AGENTS.md", "for a worker at the project's level"],
    ["viv policy agents --role reviewer --level 2", "for another role and level"],
  ],
  options: POLICY_OPTIONS,
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const answer = await (await client()).call("agentInstructions", asked(options, cwd));
    if (json) return screen.json(answer);
    for (const line of answer.text.trimEnd().split("\n")) screen.print(line);
  },
});
