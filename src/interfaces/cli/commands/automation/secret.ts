import { command } from "../../command.ts";

export default command({
  name: "automation secret",
  summary: "Print the secret that calls of a webhook are signed with",
  examples: [
    ["viv automation secret deploy", "for the caller's settings"],
    ["viv automation secret deploy --renew", "another one; the one before is worth nothing then"],
  ],
  options: { renew: { type: "flag", summary: "Make a new one" } },
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ options, positionals: [automation = ""], json, screen, cwd, client }) {
    const { secret } = await (await client()).call("automationSecret", { automation, project: cwd, renew: options.renew });
    if (json) return screen.json({ secret });
    screen.print(secret);
  },
});
