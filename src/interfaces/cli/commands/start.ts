import { command } from "../command.ts";

export default command({
  name: "start",
  summary: "Start a sandbox that was stopped or has failed again",
  details:
    "The sandbox has the files from its end, and the same name, id, snapshots and rules. The server starts services of the config, but no earlier commands. For a new sandbox see `viv create`.",
  examples: [
    ["viv start try", "go on after `viv stop` or an idle stop"],
    ["viv start try && viv exec -d try -- npm run dev", "and bring its program back"],
  ],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const server = await client();
    const before = await server.call("findSandbox", { sandbox });
    const result = await screen.during("Starting", server.call("startSandbox", { sandbox: before.id }));
    if (json) screen.json(result);
    else screen.print(before.state === "running" ? `${result.name} runs already.` : `${result.name} runs again.`);
  },
});
