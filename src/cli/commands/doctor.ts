import { command } from "../command.ts";
import { clean } from "../text.ts";

const MARKS = { good: ["✓", "green"], reduced: ["!", "yellow"], missing: ["✗", "red"] } as const;
const WALLS = {
  root: "Sandboxes here are clones of the whole machine, with all its users.",
  user: "Sandboxes here are clones of the whole machine with one user: you.",
  none: "There are no walls to be had here: only `--unwalled` copies of a folder.",
} as const;

export default command({
  name: "doctor",
  summary: "Say what this machine can do, and what would make it better",
  details: "The exit code is 1 if no walls can be had.",
  examples: [["viv doctor", "all findings, with what to do"]],
  options: {},
  positionals: [],
  async run({ json, screen, client }) {
    const report = await screen.during("Looking at the machine", (await client()).call("doctor", {}));
    const code = report.wall === "native" ? 0 : 1;
    if (json) {
      screen.json(report);
      return code;
    }
    for (const finding of report.findings) {
      const [mark, colour] = MARKS[finding.verdict];
      screen.print(`${screen.paint(colour, mark)} ${finding.check}: ${clean(finding.detail)}`);
      // A remedy may be a profile to copy, so its lines stay lines.
      for (const line of finding.remedy?.split("\n") ?? []) screen.print(`    ${clean(line)}`);
    }
    screen.print(`\n${WALLS[report.mode]}`);
    return code;
  },
});
