import { command } from "../../command.ts";

export default command({
  name: "automation rm",
  summary: "Remove an automation: what is at work ends, and its work is kept",
  details: "Proposals that wait for an answer stay, and so does its history. One of vivarium.json is removed there.",
  examples: [["viv automation rm deps", "by its name"]],
  options: {},
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ positionals: [automation = ""], json, screen, cwd, client }) {
    const done = await (await client()).call("removeAutomation", { automation, project: cwd });
    if (json) return screen.json(done);
    screen.print(`${automation} is removed.`);
  },
});
