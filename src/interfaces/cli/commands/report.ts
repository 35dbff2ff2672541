import { resolve } from "node:path";
import type { Firing, MorningReport } from "../../../base/schema/automation.ts";
import { REPORT_SECTIONS, reportSince } from "../../../base/schema/automation-words.ts";
import { command } from "../command.ts";
import { shortId } from "../references.ts";
import type { Screen } from "../screen.ts";
import { clean, plural } from "../text.ts";
import { usageError } from "../values.ts";

function sinceOf(text: string, now: Date): Date {
  const at = reportSince(text, now);
  if (at === undefined) throw usageError(`--since takes yesterday, today, a duration such as 12h, or a time, not ${JSON.stringify(text)}.`);
  return at;
}

function lineOf({ id, name, project, count, state, promotion, files, reason }: Firing): string {
  const many = count > 1 ? ` (${count} triggers)` : "";
  const what = state === "promoted" || state === "waiting" ? files.join(", ") : (reason ?? "");
  const next = state === "waiting" && promotion !== null ? `  viv approve ${shortId(promotion)}` : "";
  return clean(`  ${shortId(id)}  ${name}${many} in ${project}: ${what}${next}`);
}

function print(screen: Screen, report: MorningReport): void {
  const { firings, triggers, cost, since, stopped, left } = report;
  screen.print(
    `Since ${since}: ${plural(triggers, "trigger")}, ${plural(firings.length + left, "firing")}, $${cost.toFixed(2)} spent on models.`,
  );
  for (const [title, states] of REPORT_SECTIONS) {
    const fitting = firings.filter(({ state }) => states.includes(state));
    if (fitting.length === 0) continue;
    screen.print();
    screen.print(`${title} (${fitting.length})`);
    for (const firing of fitting) screen.print(lineOf(firing));
  }
  if (left > 0) screen.print(`\n${left} more are not listed: viv automation history`);
  if (stopped.length === 0) return;
  screen.print("\nStopped themselves");
  for (const { name, state, reason } of stopped)
    screen.print(clean(`  ${name} is ${state}: ${reason ?? ""}  viv automation resume ${name}`));
}

export default command({
  name: "report",
  summary: "The morning page: what automations did, what was promoted, what waits for you, what it cost",
  examples: [
    ["viv report", "since yesterday"],
    ["viv report --since 12h --json", "the last twelve hours, for programs"],
  ],
  options: {
    since: {
      type: "text",
      value: "WHEN",
      completes: ["yesterday", "today"],
      summary: "yesterday, today, a duration such as 12h, or a time; yesterday if left out",
    },
    project: { type: "text", value: "PATH", completes: "path", summary: "Only this project" },
  },
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const since = sinceOf(options.since ?? "yesterday", new Date()).toISOString();
    const filter = options.project === undefined ? {} : { project: resolve(cwd, options.project) };
    const report = await (await client()).call("reportFirings", { since, ...filter });
    if (json) return screen.json(report);
    print(screen, report);
  },
});
