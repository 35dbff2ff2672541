import { AUTHORITY_TEXT, boundsText, triggerText } from "../../../../base/schema/automation-words.ts";
import { paintState, printFirings } from "../../automation-view.ts";
import { command } from "../../command.ts";
import { clean } from "../../text.ts";

export default command({
  name: "automation show",
  summary: "Show an automation and its last firings",
  examples: [["viv automation show deps", "by its name"]],
  options: {},
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ positionals: [automation = ""], json, screen, cwd, client }) {
    const found = await (await client()).call("inspectAutomation", { automation, project: cwd });
    if (json) return screen.json(found);
    const { spec } = found;
    const rows: readonly (readonly [string, string | null])[] = [
      ["id", found.id],
      ["name", found.name],
      ["project", clean(found.project)],
      ["from", found.source === "config" ? "vivarium.json" : "viv automation add"],
      ["state", paintState(screen, found.state, found.state)],
      ["reason", found.reason === null ? null : clean(found.reason)],
      ["waits for", clean(triggerText(found))],
      ["next", found.nextAt],
      [
        "may",
        `${found.authority}: it ${AUTHORITY_TEXT[found.authority]}${found.authority === spec.authority ? "" : ` (asked: ${spec.authority})`}`,
      ],
      ["task", spec.task === undefined ? null : clean(spec.task)],
      ["runs", spec.run === undefined ? null : clean(spec.run.join("; "))],
      ["checks", spec.checks === undefined ? null : clean(spec.checks.join("; "))],
      ["reality", spec.reality.length === 0 ? null : clean(spec.reality.join("; "))],
      ["bounds", boundsText(spec).join("; ") || null],
    ];
    screen.fields(rows.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])));
    if (found.firings.length === 0) return;
    screen.print();
    printFirings(screen, found.firings);
  },
});
