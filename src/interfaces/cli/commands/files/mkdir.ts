import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";

export default command({
  name: "files mkdir",
  summary: "Make a folder in a sandbox",
  examples: [["viv files mkdir -p try a/b/c", "with its missing parents"]],
  options: { ...FILE_OPTIONS, parents: { type: "flag", short: "p", summary: "Make missing parents; an existing folder is fine" } },
  positionals: [SANDBOX, PATH],
  async run({ options, positionals: [sandbox = "", path = ""], json, screen, client }) {
    const done = await (await client()).call("makeFolder", { sandbox, path, parents: options.parents, ...withUser(options) });
    if (json) screen.json(done);
  },
});
