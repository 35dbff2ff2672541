/** Automations and firings as people read them. */
import type { Automation, Firing } from "../../base/schema/automation.ts";
import { shortId } from "./references.ts";
import type { Screen } from "./screen.ts";
import { ago, clean } from "./text.ts";

export function paintState(screen: Screen, cell: string, state: Automation["state"] | Firing["state"]): string {
  if (state === "promoted" || state === "active") return screen.paint("green", cell);
  if (state === "failed" || state === "undone" || state === "broken") return screen.paint("red", cell);
  if (state === "waiting" || state === "muted" || state === "alerted") return screen.paint("yellow", cell);
  return cell;
}

export function printFirings(screen: Screen, firings: readonly Firing[]): void {
  screen.table(firings, [
    { title: "ID", value: ({ id }) => shortId(id) },
    { title: "WHEN", value: ({ seenAt }) => ago(seenAt) },
    { title: "AUTOMATION", value: ({ name }) => name },
    { title: "STATE", value: ({ state }) => state, paint: (cell, { state }) => paintState(screen, cell, state) },
    {
      title: "SEEN",
      value: ({ seen, count }) => `${count > 1 ? `${count} x ` : ""}${clean(seen[0]?.text.split("\n")[0] ?? "")}`,
      shrinks: true,
    },
    { title: "RESULT", value: ({ reason, files }) => clean(reason ?? files.join(", ")), shrinks: true },
  ]);
}

export function printFiring(screen: Screen, firing: Firing): void {
  const rows: readonly (readonly [string, string | null])[] = [
    ["id", firing.id],
    ["automation", firing.name],
    ["project", clean(firing.project)],
    ["state", paintState(screen, firing.state, firing.state)],
    ["reason", firing.reason === null ? null : clean(firing.reason)],
    ["triggers", `${firing.count} (${firing.kind})`],
    ["triage", firing.triage === null ? null : `${firing.triage.way}: ${clean(firing.triage.reason)}`],
    ["authority", firing.authority],
    ["experiment", firing.experiment],
    ["promotion", firing.promotion],
    ["files", firing.files.length === 0 ? null : clean(firing.files.join(", "))],
    ["undone by", firing.undo],
    ["cost", firing.cost === 0 ? null : `$${firing.cost.toFixed(4)}`],
    ["waits until", firing.notBefore],
  ];
  screen.fields(rows.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])));
  printLines(
    screen,
    "seen",
    firing.seen.map(({ text }) => text),
  );
  printLines(
    screen,
    "way",
    firing.steps.map(({ at, state, reason }) => `${at} ${state}${reason === null ? "" : `: ${reason}`}`),
  );
  const checks = firing.after.map(
    ({ command, passed }) => `${wordOf(firing.before.find((one) => one.command === command)?.passed)} -> ${wordOf(passed)}  ${command}`,
  );
  printLines(screen, "reality before and after", checks);
  if (firing.output !== null) printLines(screen, "output", [firing.output]);
  if (firing.state === "waiting" && firing.promotion !== null)
    screen.say(`\nDecide with: viv approve ${shortId(firing.promotion)}, or viv deny ${shortId(firing.promotion)}`);
}

/** Texts of files, logs and callers: lines are shown, and what moves the cursor is not. */
function printLines(screen: Screen, title: string, texts: readonly string[]): void {
  if (texts.length === 0) return;
  screen.print();
  screen.print(screen.paint("dim", title));
  for (const text of texts) for (const line of text.replace(/\n$/, "").split("\n")) screen.print(clean(line));
}

function wordOf(passed: boolean | undefined): string {
  return passed === undefined ? "not run" : passed ? "passed" : "failed";
}
