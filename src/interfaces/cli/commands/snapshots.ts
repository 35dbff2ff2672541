import { command } from "../command.ts";
import type { Snapshot } from "../../../base/schema/sandbox.ts";
import { ago, until } from "../text.ts";

interface Line {
  readonly label: string;
  readonly snapshot: Snapshot;
}

/** Lines of a tree, children below their parents in order of time. A snapshot whose parent is gone is a root. */
export function snapshotTree(snapshots: readonly Snapshot[]): Line[] {
  const ids = new Set(snapshots.map((snapshot) => snapshot.id));
  const below = new Map<string | null, Snapshot[]>();
  for (const snapshot of snapshots.toSorted((one, other) => one.createdAt.localeCompare(other.createdAt))) {
    const parent = snapshot.parent !== null && ids.has(snapshot.parent) && snapshot.parent !== snapshot.id ? snapshot.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), snapshot]);
  }
  const lines: Line[] = [];
  const walk = (parent: string | null, indent: string): void => {
    const children = below.get(parent) ?? [];
    children.forEach((snapshot, index) => {
      const last = index === children.length - 1;
      const branch = parent === null ? "" : last ? "└─ " : "├─ ";
      lines.push({ label: `${indent}${branch}${snapshot.name ?? snapshot.id}`, snapshot });
      walk(snapshot.id, parent === null ? "" : `${indent}${last ? "   " : "│  "}`);
    });
  };
  walk(null, "");
  return lines;
}

export default command({
  name: "snapshots",
  summary: "Show the snapshots of a sandbox as a tree, or remove one",
  examples: [
    ["viv snapshots try", "the tree; * marks where the sandbox stands"],
    ["viv snapshots --remove before-upgrade try", "remove one"],
  ],
  options: { remove: { type: "text", value: "SNAPSHOT", completes: "snapshot", summary: "Remove this snapshot" } },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const server = await client();
    if (options.remove !== undefined) {
      await server.call("removeSnapshot", { sandbox, snapshot: options.remove });
      return json ? screen.json({ removed: options.remove }) : screen.print(options.remove);
    }
    const { snapshots } = await server.call("listSnapshots", { sandbox });
    if (json) return screen.json({ snapshots });
    if (snapshots.length === 0) return screen.say(`No snapshots. Take one with \`viv snapshot ${sandbox}\`.`);
    screen.table(snapshotTree(snapshots), [
      { title: "", value: ({ snapshot }) => (snapshot.current ? "*" : " "), paint: (cell) => screen.paint("green", cell) },
      { title: "SNAPSHOT", value: ({ label }) => label },
      { title: "TAKEN", value: ({ snapshot }) => ago(snapshot.createdAt) },
      { title: "EXPIRES", value: ({ snapshot }) => until(snapshot.expiresAt) },
    ]);
  },
});
