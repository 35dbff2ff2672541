import { command } from "../../command.ts";

export default command({
  name: "secret rm",
  summary: "Remove a secret; the next request is sent without it",
  examples: [["viv secret rm openai", "forget it"]],
  options: {},
  positionals: [{ name: "NAME", summary: "Name of the secret", completes: "secret" }],
  async run({ positionals: [secret = ""], json, screen, client }) {
    const answer = await (await client()).call("removeSecret", { secret });
    if (json) screen.json(answer);
    else screen.print(`${secret} is forgotten.`);
  },
});
