import { pipeline } from "node:stream/promises";
import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX } from "../../file-options.ts";
import { TerminalFilter } from "../../terminal-filter.ts";

export default command({
  name: "files cat",
  summary: "Print a file of a sandbox",
  details:
    "Bytes pass unchanged; only on a terminal, control sequences other than colours are left out. With --json the content is base64.",
  examples: [["viv files cat try package.json", "what it looks like inside"]],
  options: FILE_OPTIONS,
  positionals: [SANDBOX, PATH],
  async run({ options, positionals: [sandbox = "", path = ""], json, screen, client }) {
    const { entry, body } = await (await client()).readFile(sandbox, path, options.user);
    if (json) {
      const content = Buffer.concat(await body.toArray()).toString("base64");
      return screen.json({ ...entry, content });
    }
    await pipeline(body, TerminalFilter.before(process.stdout), { end: false });
  },
});
