import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";

export default command({
  name: "files rm",
  summary: "Remove a file or folder in a sandbox",
  examples: [
    ["viv files rm try notes.txt", "remove a file"],
    ["viv files rm -r try build", "remove a folder with all that is in it"],
  ],
  options: { ...FILE_OPTIONS, recursive: { type: "flag", short: "r", summary: "What is in a folder, too" } },
  positionals: [SANDBOX, PATH],
  async run({ options, positionals: [sandbox = "", path = ""], json, screen, client }) {
    const done = await (await client()).call("removeFile", { sandbox, path, recursive: options.recursive, ...withUser(options) });
    if (json) screen.json(done);
  },
});
