import { command } from "../command.ts";
import { findCommand } from "../references.ts";

export default command({
  name: "kill",
  summary: "Send a signal to a command in a sandbox",
  examples: [
    ["viv kill try cmd01hx", "ask it to end (TERM)"],
    ["viv kill -s KILL try cmd01hx", "make it end"],
  ],
  options: {
    signal: {
      type: "text",
      completes: ["TERM", "INT", "HUP", "KILL", "QUIT", "USR1", "USR2", "STOP", "CONT"],
      short: "s",
      value: "SIGNAL",
      summary: "Signal by name or number; TERM if left out",
    },
  },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    {
      name: "COMMAND",
      summary: "Ids of commands, or enough of their beginnings, see `viv ps`",
      completes: "running-command",
      rest: "values",
      without: "`viv stop SANDBOX` ends a sandbox.",
    },
  ],
  async run({ options, positionals: [sandbox = ""], rest, json, screen, client }) {
    const server = await client();
    const signal = (options.signal ?? "TERM").toUpperCase();
    // All are found before the first one gets the signal.
    const ids = await Promise.all(rest.map((given) => findCommand(server, sandbox, given)));
    for (const id of ids) {
      await server.call("killCommand", { sandbox, command: id, signal });
      if (!json) screen.print(id);
    }
    if (json) screen.json({ signalled: ids, signal });
  },
});
