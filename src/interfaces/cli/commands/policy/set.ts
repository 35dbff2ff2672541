import { approverToken } from "../../approver.ts";
import { command } from "../../command.ts";
import { AUTONOMY_OPTIONS, autonomy } from "../../policy-options.ts";
import { usageError } from "../../values.ts";

export default command({
  name: "policy set",
  summary: "Change what agents in a sandbox may do, from their next action on",
  details:
    "Only a person may do that: the command needs a terminal, or an approver's token in VIV_APPROVER_TOKEN. The server records the change.",
  examples: [
    ["viv policy set try --level 1", "guided"],
    ["viv policy set try --yolo 4", "everything inside; walls, production and promotion stay as they are"],
    ["viv policy set try --role reviewer", "only look"],
  ],
  options: AUTONOMY_OPTIONS,
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, env, client: connect }) {
    const change = autonomy(options);
    if (Object.keys(change).length === 0) throw usageError("Say what to change: --level, --yolo or --role.");
    const approver = approverToken(env);
    const client = await connect();
    await client.call("setPolicy", { sandbox, ...change, approver });
    const policy = await client.call("inspectPolicy", { sandbox });
    if (json) screen.json(policy.autonomy);
    else screen.print(`Agents in ${sandbox}: ${policy.title}, ${policy.autonomy.role}.`);
  },
});
