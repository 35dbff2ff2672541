import { command } from "../command.ts";
import type { DiffEntry } from "../../schema/files.ts";
import type { Screen } from "../screen.ts";
import { table } from "../table.ts";
import { clean, plural } from "../text.ts";

const LETTERS = { added: "A", changed: "M", deleted: "D" } as const;
const COLOURS = { added: "green", changed: "yellow", deleted: "red" } as const;

function added(entry: DiffEntry): string {
  if (entry.added !== null) return `+${entry.added}`;
  return entry.type === "file" ? "binary" : entry.type;
}

function printStat(screen: Screen, entries: readonly DiffEntry[]): void {
  const [, ...lines] = table(entries, [
    { title: "", value: (entry) => LETTERS[entry.status], paint: (cell, entry) => screen.paint(COLOURS[entry.status], cell) },
    { title: "", value: (entry) => entry.path },
    { title: "", value: added, right: true, paint: (cell) => screen.paint("green", cell) },
    {
      title: "",
      value: (entry) => (entry.removed === null ? "" : `-${entry.removed}`),
      right: true,
      paint: (cell) => screen.paint("red", cell),
    },
  ]);
  for (const line of lines) screen.print(line);
  const sum = (key: "added" | "removed"): number => entries.reduce((total, entry) => total + (entry[key] ?? 0), 0);
  screen.print(
    `${plural(entries.length, "path")} changed, ${plural(sum("added"), "line")} added, ${plural(sum("removed"), "line")} removed`,
  );
}

export default command({
  name: "diff",
  summary: "Show what a sandbox changed in the project",
  details: "Compares with the base the sandbox was cloned from: A added, M changed, D deleted.",
  examples: [
    ["viv diff try", "changed paths"],
    ["viv diff --stat try", "with lines added and removed"],
    ["viv diff --names try", "paths alone, for scripts"],
  ],
  options: {
    stat: { type: "flag", summary: "Count lines, too" },
    names: { type: "flag", summary: "Print paths alone" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const { entries, more } = await screen.during("Comparing", (await client()).call("diffSandbox", { sandbox, stat: options.stat }));
    if (json) return screen.json({ entries, more });
    if (more) screen.warn("There is more than is listed: too many changes, or folders too deep to look into.");
    if (entries.length === 0) return screen.say("Nothing in the project has changed.");
    if (options.stat) return printStat(screen, entries);
    for (const entry of entries) {
      if (options.names) screen.print(clean(entry.path));
      else screen.print(`${screen.paint(COLOURS[entry.status], LETTERS[entry.status])}  ${clean(entry.path)}`);
    }
  },
});
