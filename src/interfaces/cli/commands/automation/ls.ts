import { resolve } from "node:path";
import { triggerText } from "../../../../base/schema/automation-words.ts";
import { paintState } from "../../automation-view.ts";
import { command } from "../../command.ts";
import { ago, clean } from "../../text.ts";

export default command({
  name: "automation ls",
  summary: "List automations",
  examples: [
    ["viv automation ls", "all of this machine"],
    ["viv automation ls --project . --json", "those of a project, for programs"],
  ],
  options: { project: { type: "text", value: "PATH", completes: "path", summary: "Only those of this project" } },
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const filter = options.project === undefined ? {} : { project: resolve(cwd, options.project) };
    const { automations } = await (await client()).call("listAutomations", filter);
    if (json) return screen.json({ automations });
    if (automations.length === 0) return screen.say("No automations. Add one with `viv automation add`.");
    screen.table(automations, [
      { title: "NAME", value: ({ name }) => name },
      { title: "STATE", value: ({ state }) => state, paint: (cell, { state }) => paintState(screen, cell, state) },
      { title: "WAITS FOR", value: (each) => clean(triggerText(each)), shrinks: true },
      { title: "MAY", value: ({ authority }) => authority },
      { title: "NEXT", value: ({ nextAt }) => nextAt ?? "-" },
      { title: "LAST", value: ({ last }) => (last === null ? "-" : `${last.state} ${ago(last.at)}`) },
      { title: "PROJECT", value: ({ project }) => clean(project), shrinks: true },
      { title: "REASON", value: ({ reason }) => clean(reason ?? ""), shrinks: true },
    ]);
  },
});
