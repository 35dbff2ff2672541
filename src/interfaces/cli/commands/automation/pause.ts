import { command } from "../../command.ts";

export default command({
  name: "automation pause",
  summary: "Let an automation wait for nothing until it is resumed",
  examples: [["viv automation pause deps", "by its name"]],
  options: { reason: { type: "text", value: "TEXT", summary: "Why, for those who look at it later" } },
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ options, positionals: [automation = ""], json, screen, cwd, client }) {
    const found = await (await client()).call("pauseAutomation", { automation, project: cwd, reason: options.reason });
    if (json) return screen.json(found);
    screen.print(
      `${found.name} is ${found.state}. What is at work goes on; what has not begun waits for \`viv automation resume ${found.name}\`.`,
    );
  },
});
