import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { findId, shortId } from "../references.ts";
import { cleanPath } from "../text.ts";

export default command({
  name: "approve",
  summary: "Allow what waits for an answer, once or always",
  details: "Only a person may answer: it needs a terminal, or an approver's token in VIV_APPROVER_TOKEN.",
  examples: [
    ["viv approve apv4k2m", "this very action, once"],
    ["viv approve apv4k2m --always", "and from now on, by the rule that `viv approvals` shows"],
  ],
  options: {
    always: { type: "flag", summary: "Add the narrow rule that is shown, so that it is not asked again" },
  },
  positionals: [{ name: "APPROVAL", summary: "Id, or its beginning" }],
  async run({ options, positionals: [reference = ""], json, screen, env, client: connect }) {
    const approver = approverToken(env);
    const client = await connect();
    const approval = await findId(client, "approval", reference);
    const answered = await client.call("answerApproval", { approval, answer: options.always ? "always" : "once", approver });
    if (json) return screen.json(answered);
    const { id, scope, always, target } = answered;
    screen.print(
      `${shortId(id)} is approved${scope === "always" && always !== null ? `, and from now on by the rule ${cleanPath(always)}` : ", once"}.`,
    );
    // A table may have shown less of it.
    screen.print(`  ${cleanPath(target)}`);
  },
});
