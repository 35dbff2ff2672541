import { command } from "../command.ts";

export default command({
  name: "stop",
  summary: "End a sandbox and keep a snapshot of it",
  details: "All processes end. The files stay in a snapshot that can be forked; `viv rm` throws everything away.",
  examples: [
    ["viv stop try", "end it, keep its files"],
    ["viv fork try --name again", "go on later in a new sandbox"],
  ],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const result = await screen.during("Stopping", (await client()).call("stopSandbox", { sandbox }));
    if (json) screen.json(result);
    else screen.print(`${result.name} is stopped; \`viv fork ${result.name}\` goes on from its files.`);
  },
});
