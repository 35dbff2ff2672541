import { command } from "../command.ts";
import { duration } from "../text.ts";

export default command({
  name: "snapshot",
  summary: "Freeze the state of a sandbox",
  details: "A snapshot holds files, not processes.",
  examples: [
    ["viv snapshot try", "a point to come back to"],
    ["viv snapshot try before-upgrade", "with a name"],
  ],
  options: {},
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "NAME", summary: "Name of the snapshot", optional: true },
  ],
  async run({ positionals: [sandbox = "", name], json, screen, client }) {
    const input = name === undefined ? { sandbox } : { sandbox, name };
    const snapshot = await screen.during("Taking the snapshot", (await client()).call("createSnapshot", input));
    if (json) return screen.json(snapshot);
    screen.print(snapshot.name ?? snapshot.id);
    if (screen.terminal) screen.say(screen.paint("dim", `The sandbox stood still for ${duration(snapshot.frozenMs)}.`));
  },
});
