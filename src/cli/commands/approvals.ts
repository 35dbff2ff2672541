import { command } from "../command.ts";
import { shortId } from "../references.ts";
import { ago, clean } from "../text.ts";

export default command({
  name: "approvals",
  summary: "Show what waits for a person's answer",
  details: "Answer with `viv approve` or `viv deny`. What nobody answers by its deadline is denied; the action can be tried again.",
  examples: [
    ["viv approvals", "what waits"],
    ["viv approvals --all", "what was answered, too"],
  ],
  options: {
    all: { type: "flag", short: "a", summary: "Also those that were answered" },
    quiet: { type: "flag", short: "q", summary: "Print ids only" },
  },
  positionals: [],
  async run({ options, json, screen, client }) {
    const { approvals } = await (await client()).call("listApprovals", { all: options.all });
    if (json) return screen.json({ approvals });
    if (options.quiet) {
      for (const { id } of approvals) screen.print(id);
      return;
    }
    if (approvals.length === 0) return screen.say("Nothing waits for an answer.");
    screen.table(approvals, [
      { title: "ID", value: ({ id }) => shortId(id) },
      { title: "ASKED", value: ({ askedAt }) => ago(askedAt) },
      { title: "SANDBOX", value: ({ sandboxName }) => sandboxName ?? "-" },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "STATE", value: ({ state }) => state },
      { title: "WHAT", value: ({ target }) => clean(target), shrinks: true },
      { title: "WHY", value: ({ reason }) => clean(reason), shrinks: true },
    ]);
  },
});
