import { command } from "../command.ts";

export default command({
  name: "resume",
  summary: "Let a paused sandbox go on",
  examples: [["viv resume try", "let a paused sandbox go on"]],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const result = await screen.during("Thawing", (await client()).call("resumeSandbox", { sandbox }));
    if (json) screen.json(result);
    else screen.print(`${result.name} goes on.`);
  },
});
