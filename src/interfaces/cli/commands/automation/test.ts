import { triggerText } from "../../../../base/schema/automation-words.ts";
import { command } from "../../command.ts";
import { clean } from "../../text.ts";

export default command({
  name: "automation test",
  summary: "Show what an automation would do now, without doing it",
  examples: [["viv automation test deps", "its trigger, its triage, and what is in its way"]],
  options: {},
  positionals: [{ name: "NAME", summary: "Name or id of an automation", completes: "automation" }],
  async run({ positionals: [automation = ""], json, screen, cwd, client }) {
    const test = await (await client()).call("testAutomation", { automation, project: cwd });
    if (json) return screen.json(test);
    screen.fields([
      ["waits for", clean(triggerText(test.automation))],
      ["sees now", clean(test.seen)],
      ["would fire", test.wouldFire ? "yes" : "no"],
      ["would do", `${test.triage.way}: ${clean(test.triage.reason)}`],
      ["may", test.automation.authority],
      ["in its way", clean(test.hindrance ?? "nothing")],
    ]);
  },
});
