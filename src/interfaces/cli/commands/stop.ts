import { command } from "../command.ts";

export default command({
  name: "stop",
  summary: "End a sandbox and keep a snapshot of it",
  details:
    "All processes end. The files stay in a snapshot for 7 days, from which `viv start` and `viv fork` go on; `viv rm` throws everything away.",
  examples: [
    ["viv stop try", "end it, keep its files"],
    ["viv start try", "go on later"],
  ],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const result = await screen.during("Stopping", (await client()).call("stopSandbox", { sandbox }));
    if (json) screen.json(result);
    else screen.print(`${result.name} is stopped; \`viv start ${result.name}\` goes on from its files.`);
  },
});
