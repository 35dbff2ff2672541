import type { RefreshReport } from "../../../base/schema/files.ts";
import { command } from "../command.ts";
import type { Screen } from "../screen.ts";
import { clean, plural } from "../text.ts";

const LETTERS = { added: "A", changed: "M", deleted: "D" } as const;

function show(screen: Screen, report: RefreshReport): void {
  const name = clean(report.name);
  if (report.snapshot === null) return screen.print(`The project has not changed: ${name} is up to date.`);
  for (const { path, status } of report.changes) screen.print(`${LETTERS[status]}  ${clean(path)}`);
  if (report.files > report.changes.length) screen.print(`   and ${report.files - report.changes.length} more`);
  screen.print(`${name} is up to date: ${plural(report.files, "path")} brought in.`);
  screen.print(`The state before is snapshot ${report.snapshot}; \`viv rollback ${name} ${report.snapshot}\` brings it back.`);
  if (report.conflicts.length === 0) return;
  screen.print(screen.paint("yellow", `${plural(report.conflicts.length, "conflict")} left to settle inside:`));
  for (const { path, kind, message } of report.conflicts) screen.print(`  ${clean(path)} (${kind}): ${clean(message)}`);
  screen.print(
    `Edit those files inside, with \`viv shell ${name}\`, and remove the ones that end in .reality when they are no longer needed.`,
  );
}

export default command({
  name: "refresh",
  summary: "Bring the project as it is now into a sandbox",
  details:
    "The server merges what changed in the real project since the clone with the sandbox's changes; processes go on. If both changed the same lines, the file gets conflict markers; if it can't have any, the sandbox's version stays, and the real one lies beside it as NAME.reality. The server takes a snapshot before. Afterwards `viv diff` and `viv promote` show only the sandbox's own changes. The refresh does not touch .git. The exit code is 1 if there are conflicts.",
  examples: [["viv refresh try", "go on from today's state of the project"]],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ positionals: [sandbox = ""], json, screen, client }) {
    const server = await client();
    const report = await screen.during("Merging", server.call("refreshSandbox", { sandbox }));
    if (json) screen.json(report);
    else show(screen, report);
    return report.conflicts.length === 0 ? 0 : 1;
  },
});
