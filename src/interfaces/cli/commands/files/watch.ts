import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";
import { clean } from "../../text.ts";

export default command({
  name: "files watch",
  summary: "Show changes below a path in a sandbox as they happen",
  details: "Goes on until ctrl-C. With --json each change is one JSON value on a line of its own.",
  examples: [["viv files watch -r try src", "what is being edited"]],
  options: { ...FILE_OPTIONS, recursive: { type: "flag", short: "r", summary: "In folders below, too" } },
  positionals: [SANDBOX, { ...PATH, optional: true }],
  async run({ options, positionals: [sandbox = "", path = "."], json, screen, client }) {
    const server = await client();
    const stop = new AbortController();
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
    const changes = server.watchFiles(sandbox, path, { recursive: options.recursive, signal: stop.signal, ...withUser(options) });
    for await (const { change, path: changed } of changes) {
      if (json) screen.jsonLine({ change, path: changed });
      else screen.print(`${change.padEnd(8)} ${clean(changed)}`);
    }
  },
});
