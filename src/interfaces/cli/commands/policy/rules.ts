import { resolve } from "node:path";
import { command } from "../../command.ts";
import { shortId } from "../../references.ts";
import { ago, clean } from "../../text.ts";

export default command({
  name: "policy rules",
  summary: "Show what people allowed always",
  details:
    "Each rule allows exactly one action in its project, so that the server does not ask about it. An action that the policy denies stays denied.",
  examples: [
    ["viv policy rules", "of all projects"],
    ["viv policy forget apv4k2m", "ask about it again"],
  ],
  options: {
    project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "Only those of this project" },
  },
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const project = options.project === undefined ? {} : { project: resolve(cwd, options.project) };
    const { rules } = await (await client()).call("listRules", project);
    if (json) return screen.json({ rules });
    if (rules.length === 0) return screen.say("There are no such rules. `viv approve --always` adds one.");
    screen.table(rules, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "ADDED", value: ({ addedAt }) => ago(addedAt) },
      { title: "ASKED BY", value: ({ sandboxName }) => sandboxName ?? "-" },
      { title: "PROJECT", value: (rule) => clean(rule.project), shrinks: true },
      { title: "RULE", value: ({ rule }) => clean(rule), shrinks: true },
    ]);
  },
});
