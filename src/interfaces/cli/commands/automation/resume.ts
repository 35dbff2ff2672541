import { command } from "../../command.ts";

export default command({
  name: "automation resume",
  summary: "Let an automation wait for its trigger again, also one that was muted",
  examples: [["viv automation resume deps", "by its name"]],
  options: {},
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ positionals: [automation = ""], json, screen, cwd, client }) {
    const found = await (await client()).call("resumeAutomation", { automation, project: cwd });
    if (json) return screen.json(found);
    screen.print(`${found.name} is ${found.state}.`);
  },
});
