import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";

export default command({
  name: "files mv",
  summary: "Rename a file or folder in a sandbox",
  examples: [["viv files mv try old.txt new.txt", "rename it"]],
  options: { ...FILE_OPTIONS, replace: { type: "flag", short: "f", summary: "Replace what is there" } },
  positionals: [SANDBOX, PATH, { ...PATH, name: "TO", summary: "New path" }],
  async run({ options, positionals: [sandbox = "", path = "", to = ""], json, screen, client }) {
    const done = await (await client()).call("moveFile", { sandbox, path, to, replace: options.replace, ...withUser(options) });
    if (json) screen.json(done);
  },
});
