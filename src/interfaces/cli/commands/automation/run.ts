import { setTimeout as rest } from "node:timers/promises";
import { printFiring } from "../../automation-view.ts";
import { command } from "../../command.ts";
import { shortId } from "../../references.ts";

const LOOK_MS = 250;
const GOOD = new Set(["promoted", "done", "waiting", "alerted"]);

export default command({
  name: "automation run",
  summary: "Start an automation now, and wait for what comes of it",
  details: "It starts also when it is paused, muted or quiet. The exit code is 1 where it failed or was undone.",
  examples: [
    ["viv automation run deps", "and wait"],
    ["viv automation run deps --detach", "and do not"],
  ],
  options: { detach: { type: "flag", short: "d", summary: "Print the id of the firing and leave it running" } },
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ options, positionals: [automation = ""], json, screen, cwd, client }) {
    const server = await client();
    const begun = await server.call("runAutomation", { automation, project: cwd });
    if (options.detach) return json ? screen.json(begun) : screen.print(begun.id);
    screen.say(`Firing ${shortId(begun.id)} of ${begun.name}`);
    let firing = begun;
    while (firing.endedAt === null && firing.state !== "waiting") {
      await rest(LOOK_MS);
      firing = await server.call("inspectFiring", { firing: begun.id });
    }
    if (json) screen.json(firing);
    else printFiring(screen, firing);
    return GOOD.has(firing.state) ? 0 : 1;
  },
});
