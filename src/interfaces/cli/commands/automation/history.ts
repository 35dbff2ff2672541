import { printFiring, printFirings } from "../../automation-view.ts";
import { command } from "../../command.ts";
import { findId } from "../../references.ts";

export default command({
  name: "automation history",
  summary: "List firings of automations, or show one",
  examples: [
    ["viv automation history", "the latest ones"],
    ["viv automation history deps", "of one automation"],
    ["viv automation history fir4fq68d", "one firing: what was seen, its triage, its way, what came of it"],
  ],
  options: { limit: { type: "integer", value: "N", summary: "At most so many; 50 if left out" } },
  positionals: [{ name: "NAME", summary: "Name or id of an automation, or id of a firing", optional: true, completes: "automation" }],
  async run({ options, positionals: [reference], json, screen, cwd, client }) {
    const server = await client();
    if (reference !== undefined && /^fir[0-9a-z]{4,}$/.test(reference)) {
      const firing = await server.call("inspectFiring", { firing: await findId(server, "firing", reference) });
      return json ? screen.json(firing) : printFiring(screen, firing);
    }
    const named = reference === undefined ? {} : { automation: reference, project: cwd };
    const { firings } = await server.call("listFirings", { ...named, limit: options.limit });
    if (json) return screen.json({ firings });
    if (firings.length === 0) return screen.say("Nothing has fired yet.");
    printFirings(screen, firings);
  },
});
