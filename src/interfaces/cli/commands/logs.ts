import { once } from "node:events";
import { command } from "../command.ts";
import { findCommand } from "../references.ts";
import { runSession } from "../session.ts";
import { TerminalFilter } from "../terminal-filter.ts";
import { usageError } from "../values.ts";

async function write(target: NodeJS.WriteStream, text: string): Promise<void> {
  const shown = target.isTTY ? new TerminalFilter().pass(Buffer.from(text)) : text;
  if (shown.length > 0 && !target.write(shown)) await once(target, "drain");
}

export default command({
  name: "logs",
  summary: "Show the output of a command in a sandbox",
  details: "Without COMMAND it is the one started last. On a terminal, control sequences other than colours are left out.",
  examples: [
    ["viv logs try", "output of the latest command"],
    ["viv logs -f try cmd01hx", "go on as it comes, until the command ends"],
  ],
  options: { follow: { type: "flag", short: "f", summary: "Go on until the command ends" } },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "COMMAND", summary: "Its id, or enough of its beginning, see `viv ps --all`", optional: true, completes: "command" },
  ],
  async run({ options, positionals: [sandbox = "", given], json, screen, client }) {
    const server = await client();
    const id =
      (given === undefined ? undefined : await findCommand(server, sandbox, given)) ??
      (await server.call("listCommands", { sandbox, all: true })).commands.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)).at(-1)
        ?.id;
    if (id === undefined) throw usageError(`Nothing has run in ${sandbox} yet.`, `Run something with \`viv exec ${sandbox} -- COMMAND\`.`);
    const onGap = (count: number): void => screen.warn(`viv: ${count} bytes of earlier output are no longer in the log.`);
    if (options.follow && !json) {
      const stream = await server.attach(sandbox, id, { stdin: false });
      const filters = { stdout: TerminalFilter.before(process.stdout), stderr: TerminalFilter.before(process.stderr) };
      await runSession(stream, { terminal: false, stdin: false, signals: "leave", detachable: false, onGap, ...filters });
      return;
    }
    const result = await server.call("inspectCommand", { sandbox, command: id });
    if (json) return screen.json(result);
    if (result.truncated) screen.warn("viv: the log is longer; this is its end.");
    await write(process.stdout, result.stdout);
    await write(process.stderr, result.stderr);
  },
});
