import type { Promotion } from "../../../base/schema/promotion.ts";
import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { definedOnly } from "../defined-only.ts";
import { runPromotion, promotionExit } from "../promote-run.ts";
import { printSettled } from "../promotion-view.ts";
import { findQuestion, shortId } from "../references.ts";
import { cleanPath } from "../text.ts";
import { usageError } from "../values.ts";

export default command({
  name: "approve",
  summary: "Answer a question with yes, once or always",
  details:
    "A promotion that waited goes on, and the exit code is that of `viv promote`. Only a person may answer: the command needs a terminal, or an approver's token in VIV_APPROVER_TOKEN.",
  examples: [
    ["viv approve apv4k2m", "this very action, once"],
    ["viv approve prm4d5e6f", "a promotion that waits, as `viv approvals prm4d5e6f` shows it"],
    ["viv approve apv4k2m --always", "and from now on, by the rule that `viv approvals` shows"],
  ],
  options: {
    always: { type: "flag", summary: "Add the rule that the question shows, so that the server does not ask again" },
  },
  positionals: [{ name: "APPROVAL", summary: "Id, or its beginning", completes: "question" }],
  async run({ options, positionals: [reference = ""], json, screen, env, client: connect }) {
    const approver = approverToken(env);
    const client = await connect();
    const approval = await findQuestion(client, reference);
    if (approval.startsWith("prm")) {
      if (options.always) throw usageError("--always is not for promotions: an approval is for one promotion.", "Leave --always out.");
      const call = (): Promise<Promotion> =>
        client.call("continuePromotion", { promotion: approval, approve: true, approver, env: definedOnly(env) });
      const promotion = await runPromotion({ client, screen, env }, call, ({ id }) => id === approval);
      if (json) screen.json(promotion);
      else printSettled(screen, promotion);
      return promotionExit(promotion);
    }
    const answered = await client.call("answerApproval", { approval, answer: options.always ? "always" : "once", approver });
    if (json) {
      screen.json(answered);
      return 0;
    }
    const { id, scope, always, target } = answered;
    screen.print(
      `${shortId(id)} is approved${scope === "always" && always !== null ? `, and from now on by the rule ${cleanPath(always)}` : ", once"}.`,
    );
    // A table may have shown less of it.
    screen.print(`  ${cleanPath(target)}`);
    return 0;
  },
});
