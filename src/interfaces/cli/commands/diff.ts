import { pipeline } from "node:stream/promises";
import { command, type Invocation } from "../command.ts";
import type { DiffEntry, SystemDiff } from "../../../base/schema/files.ts";
import type { Screen } from "../screen.ts";
import { table } from "../table.ts";
import { TerminalFilter } from "../terminal-filter.ts";
import { clean, plural } from "../text.ts";
import { usageError } from "../values.ts";

const LETTERS = { added: "A", changed: "M", deleted: "D", renamed: "R" } as const;
const COLOURS = { added: "green", changed: "yellow", deleted: "red", renamed: "cyan" } as const;
/** Paths of one folder that are left out and named; of more, the number alone. */
const MOST_LISTED = 10;
const MORE = "There is more than is listed: too many changes, or folders too deep to look into.";

function name(entry: DiffEntry): string {
  return entry.from === null ? entry.path : `${entry.from} -> ${entry.path}`;
}

/** What a list of names alone would hide. */
function remark(entry: DiffEntry): string {
  if (entry.oldMode === null || entry.newMode === null || entry.oldMode === entry.newMode) return "";
  if (entry.newMode === "100755" && entry.oldMode === "100644") return " (now executable)";
  if (entry.newMode === "100644" && entry.oldMode === "100755") return " (no longer executable)";
  return ` (now a ${entry.type})`;
}

function added(entry: DiffEntry): string {
  if (entry.added !== null) return `+${entry.added}`;
  return entry.type === "file" ? "binary" : entry.type;
}

function printStat(screen: Screen, entries: readonly DiffEntry[]): void {
  const [, ...lines] = table(entries, [
    { title: "", value: (entry) => LETTERS[entry.status], paint: (cell, entry) => screen.paint(COLOURS[entry.status], cell) },
    { title: "", value: (entry) => name(entry) + remark(entry) },
    { title: "", value: added, right: true, paint: (cell) => screen.paint("green", cell) },
    {
      title: "",
      value: (entry) => (entry.removed === null ? "" : `-${entry.removed}`),
      right: true,
      paint: (cell) => screen.paint("red", cell),
    },
  ]);
  // In one piece: thousands of lines cost thousands of writes.
  if (lines.length > 0) screen.print(lines.join("\n"));
  const sum = (key: "added" | "removed"): number => entries.reduce((total, entry) => total + (entry[key] ?? 0), 0);
  screen.print(
    `${plural(entries.length, "path")} changed, ${plural(sum("added"), "line")} added, ${plural(sum("removed"), "line")} removed`,
  );
}

function printEntry(screen: Screen, entry: DiffEntry): void {
  screen.print(`${screen.paint(COLOURS[entry.status], LETTERS[entry.status])}  ${clean(name(entry))}${screen.paint("dim", remark(entry))}`);
}

function printSystem(screen: Screen, { packages, etc, folders, more }: SystemDiff): void {
  if (more) screen.warn(MORE);
  if (packages.length + etc.length + folders.length === 0) return screen.say("Nothing outside the project has changed.");
  for (const { manager, name: called, old, new: now } of packages) {
    const status = old === null ? "added" : now === null ? "deleted" : "changed";
    const versions = status === "changed" ? `${old ?? ""} -> ${now ?? ""}` : (now ?? old ?? "");
    screen.print(`${screen.paint(COLOURS[status], LETTERS[status])}  ${manager} ${clean(called)} ${clean(versions)}`);
  }
  for (const entry of etc) printEntry(screen, entry);
  for (const folder of folders) {
    const counts = (["added", "changed", "deleted"] as const).filter((key) => folder[key] > 0).map((key) => `${folder[key]} ${key}`);
    screen.print(`   ${clean(folder.path)}/: ${counts.join(", ")}`);
  }
}

const options = {
  patch: { type: "flag", summary: "Print a patch that `git apply` takes on a copy of the base" },
  stat: { type: "flag", summary: "Count lines, too" },
  names: { type: "flag", summary: "Print paths alone" },
  promotable: { type: "flag", summary: "Only what `viv promote` would take, without what it leaves out" },
  system: { type: "flag", summary: "Show what changed outside the project: packages, /etc, the rest by folder" },
} as const;

async function run({ options: chosen, positionals: [sandbox = ""], json, screen, client }: Invocation<typeof options>): Promise<void> {
  const forms = [chosen.patch, chosen.stat, chosen.names, chosen.system].filter(Boolean);
  if (forms.length > 1) throw usageError("Choose one of --patch, --stat, --names and --system.");
  const { promotable } = chosen;
  if (promotable && chosen.system) throw usageError("--promotable is for the project; --system shows what lies outside it.");
  const server = await client();
  if (chosen.system) {
    const system = await screen.during("Comparing", server.call("diffSystem", { sandbox }));
    return json ? screen.json(system) : printSystem(screen, system);
  }
  if (chosen.patch) {
    const patch = await screen.during("Comparing", server.patch(sandbox, { promotable }));
    // Contents are bytes: a patch as a JSON string would not be the same any more.
    if (json) return screen.json({ patch: Buffer.concat(await patch.toArray()).toString("base64") });
    return pipeline(patch, TerminalFilter.before(process.stdout), { end: false });
  }
  const { entries, more } = await screen.during("Comparing", server.call("diffSandbox", { sandbox, stat: true, promotable }));
  if (json) return screen.json({ entries, more });
  if (more) screen.warn(MORE);
  if (entries.length === 0) return screen.say(`Nothing ${promotable ? "that can be promoted" : "in the project"} has changed.`);
  const left = entries.filter(({ leftOut }) => leftOut !== null);
  const taken = entries.filter(({ leftOut }) => leftOut === null);
  if (chosen.names) return printNames(screen, [...taken, ...left]);
  if (chosen.stat && taken.length > 0) printStat(screen, taken);
  else for (const entry of taken) printEntry(screen, entry);
  printLeftOut(screen, left, taken.length > 0);
}

function printNames(screen: Screen, entries: readonly DiffEntry[]): void {
  for (const { path } of entries) screen.print(clean(path));
}

const REASONS = {
  ignored: "ignored",
  special: "no file, folder or link",
  git: "its name imitates git's own folder",
  folder: "an empty folder",
} as const;

/** What stays behind, a line for each path or, where there are many, for each folder at the top. */
function printLeftOut(screen: Screen, left: readonly DiffEntry[], isFollowing: boolean): void {
  if (left.length === 0) return;
  if (isFollowing) screen.print();
  screen.print(screen.paint("dim", "Left out by a promotion, unless `viv promote --include PATH` names it:"));
  const files = left.filter(({ leftOut, type }) => leftOut === "folder" || type !== "dir");
  const groups = Map.groupBy(files, ({ path }) => (path.includes("/") ? `${path.slice(0, path.indexOf("/"))}/` : path));
  for (const [top, entries] of groups) {
    if (entries.length > MOST_LISTED) screen.print(`   ${clean(top)}: ${plural(entries.length, "path")}`);
    else
      for (const entry of entries) {
        const why = entry.leftOut === null || entry.leftOut === "ignored" ? "" : ` (${REASONS[entry.leftOut]})`;
        screen.print(`${screen.paint(COLOURS[entry.status], LETTERS[entry.status])}  ${clean(name(entry))}${screen.paint("dim", why)}`);
      }
  }
}

export default command({
  name: "diff",
  summary: "Show what a sandbox changed",
  details:
    "Compares with the base the sandbox was cloned from: A added, M changed, D deleted, R renamed. Paths that a promotion would leave out, such as ignored folders, are listed apart; --promotable omits them. A patch holds files and links with their exact bytes; it has no empty folders, sockets, pipes and devices. With --json a patch is base64.",
  examples: [
    ["viv diff try", "changed paths"],
    ["viv diff --stat try", "with lines added and removed"],
    ["viv diff --names try", "paths alone, for scripts"],
    ["viv diff --patch try > try.patch", "for `git apply`, or to read"],
    ["viv diff --promotable --patch try", "what `viv promote` would bring, to read"],
    ["viv diff --system try", "packages and files outside the project"],
  ],
  options,
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  run,
});
