import { command } from "../command.ts";

export default command({
  name: "pause",
  summary: "Freeze all processes of a sandbox",
  examples: [["viv pause try", "freeze all processes of a sandbox"]],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const result = await screen.during("Freezing", (await client()).call("pauseSandbox", { sandbox }));
    if (json) screen.json(result);
    else screen.print(`${result.name} is paused; \`viv resume ${result.name}\` lets it go on.`);
  },
});
