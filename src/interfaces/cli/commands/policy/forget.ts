import { command } from "../../command.ts";
import { findId, shortId } from "../../references.ts";

export default command({
  name: "policy forget",
  summary: "Remove a rule that an answer `always` added",
  examples: [["viv policy forget apv4k2m", "from the next action on it is asked again"]],
  options: {},
  positionals: [{ name: "RULE", summary: "Id, or its beginning, as `viv policy rules` shows it", completes: "rule" }],
  async run({ positionals: [reference = ""], json, screen, client: connect }) {
    const client = await connect();
    const rule = await findId(client, "rule", reference);
    const done = await client.call("forgetRule", { rule });
    if (json) screen.json(done);
    else screen.print(`${shortId(rule)} is forgotten: it is asked again.`);
  },
});
