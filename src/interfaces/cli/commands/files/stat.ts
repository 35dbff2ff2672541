import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";
import { bytes, clean } from "../../text.ts";

export default command({
  name: "files stat",
  summary: "Show what a path in a sandbox is",
  examples: [["viv files stat try /etc/hosts", "kind, size, mode, owner, time"]],
  options: FILE_OPTIONS,
  positionals: [SANDBOX, PATH],
  async run({ options, positionals: [sandbox = "", path = ""], json, screen, client }) {
    const entry = await (await client()).call("statFile", { sandbox, path, ...withUser(options) });
    if (json) return screen.json(entry);
    screen.fields([
      ["path", clean(path)],
      ["type", entry.type],
      ["size", `${bytes(entry.size)} (${entry.size} bytes)`],
      ["mode", entry.mode],
      ["owner", `${entry.uid}:${entry.gid}`],
      ["changed", entry.modifiedAt],
      ...(entry.target === null ? [] : [["leads to", clean(entry.target)] as const]),
    ]);
  },
});
