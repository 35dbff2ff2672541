import { command } from "../command.ts";
import { duration } from "../text.ts";

export default command({
  name: "rollback",
  summary: "Bring back the state of a snapshot; processes end",
  examples: [["viv rollback try before-upgrade", "as if nothing had happened since"]],
  options: {},
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "SNAPSHOT", summary: "Id or name of the snapshot, see `viv snapshots`", completes: "snapshot" },
  ],
  async run({ positionals: [sandbox = "", snapshot = ""], json, screen, client }) {
    const server = await client();
    const started = performance.now();
    const result = await screen.during("Rolling back", server.call("rollback", { sandbox, snapshot }));
    if (json) screen.json(result);
    else screen.print(`${result.name} is back at ${snapshot} after ${duration(performance.now() - started)}.`);
  },
});
