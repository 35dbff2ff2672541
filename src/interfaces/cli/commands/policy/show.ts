import { command } from "../../command.ts";
import { clean } from "../../text.ts";

export default command({
  name: "policy show",
  summary: "Show the policy that is enforced in a sandbox",
  examples: [
    ["viv policy show try", "level, role, and the text that its agents read"],
    ["viv policy show --json try", "with every rule, for programs"],
  ],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const policy = await (await client()).call("inspectPolicy", { sandbox });
    if (json) return screen.json(policy);
    screen.print(`${policy.title}, ${policy.autonomy.role}\n`);
    for (const line of policy.text.trimEnd().split("\n")) screen.print(clean(line));
  },
});
