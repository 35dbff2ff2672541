import { resolve } from "node:path";
import { command } from "../../command.ts";
import { clean } from "../../text.ts";

export default command({
  name: "policy test",
  summary: "Run the examples kept beside a project's rules",
  details:
    "Examples are `policy.examples` of vivarium.json. Ends with 1 if a rule does not match what it must, or matches what it must not.",
  examples: [["viv policy test", "in the current project"]],
  options: {},
  positionals: [{ name: "PATH", summary: "A folder in the project; the current one if left out", optional: true, completes: "path" }],
  async run({ positionals: [path = "."], json, screen, cwd, client }) {
    const report = await (await client()).call("testPolicy", { project: resolve(cwd, path) });
    if (json) screen.json(report);
    else {
      for (const { rule, example, expected, reason } of report.failures)
        screen.print(`${screen.paint("red", "failed")}  ${clean(rule)}  ${expected}  ${clean(example)}: ${reason}`);
      screen.print(`${report.passed} passed, ${report.failures.length} failed.`);
    }
    return report.failures.length > 0 ? 1 : 0;
  },
});
