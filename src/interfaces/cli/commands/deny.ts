import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { findQuestion, shortId } from "../references.ts";

export default command({
  name: "deny",
  summary: "Answer a question with no",
  details: "Only a person may answer: the command needs a terminal, or an approver's token in VIV_APPROVER_TOKEN.",
  examples: [
    ["viv deny apv4k2m", "it is not done"],
    ["viv deny prm4d5e6f", "a promotion that waits does not go on"],
  ],
  options: {},
  positionals: [{ name: "APPROVAL", summary: "Id, or its beginning", completes: "question" }],
  async run({ positionals: [reference = ""], json, screen, env, client: connect }) {
    const approver = approverToken(env);
    const client = await connect();
    const approval = await findQuestion(client, reference);
    const answered = await client.call("answerApproval", { approval, answer: "deny", approver });
    if (json) return screen.json(answered);
    const { id } = answered;
    screen.print(`${shortId(id)} is denied.`);
  },
});
