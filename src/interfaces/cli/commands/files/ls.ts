import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";
import type { FileEntry } from "../../../../base/schema/files.ts";
import { ago, bytes } from "../../text.ts";

const LETTERS = { file: "-", dir: "d", link: "l", fifo: "p", socket: "s", char: "c", block: "b" } as const;

function shownPath(entry: FileEntry): string {
  if (entry.type === "link") return `${entry.path} -> ${entry.target ?? ""}`;
  return entry.type === "dir" ? `${entry.path}/` : entry.path;
}

export default command({
  name: "files ls",
  summary: "List a folder inside a sandbox",
  examples: [
    ["viv files ls try", "the project's folder as it is inside"],
    ["viv files ls --depth 3 try /etc", "with what lies below"],
  ],
  options: { ...FILE_OPTIONS, depth: { type: "integer", value: "N", summary: "Levels below; 1 if left out" } },
  positionals: [SANDBOX, { ...PATH, optional: true }],
  async run({ options, positionals: [sandbox = "", path = "."], json, screen, client }) {
    const depth = options.depth === undefined ? {} : { depth: options.depth };
    const { entries } = await (await client()).call("listFiles", { sandbox, path, ...depth, ...withUser(options) });
    if (json) return screen.json({ entries });
    if (entries.length === 0) return screen.say("The folder is empty.");
    screen.table(entries, [
      { title: "MODE", value: (entry) => `${LETTERS[entry.type]}${entry.mode.padStart(4, "0")}` },
      { title: "OWNER", value: (entry) => `${entry.uid}:${entry.gid}` },
      { title: "SIZE", value: (entry) => (entry.type === "file" ? bytes(entry.size) : "-"), right: true },
      { title: "CHANGED", value: (entry) => ago(entry.modifiedAt) },
      { title: "PATH", value: shownPath, paint: (cell, entry) => (entry.type === "dir" ? screen.paint("cyan", cell) : cell) },
    ]);
  },
});
