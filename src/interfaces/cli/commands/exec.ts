import { command } from "../command.ts";
import { commandSpec, RUN_OPTIONS, runInside, terminalSize } from "../run-inside.ts";

export default command({
  name: "exec",
  summary: "Run a command in a sandbox",
  details:
    "Stdin, stdout, stderr and the exit code pass through unchanged. The command gets a terminal when stdin and stdout are one. The exit code is 125 for a failure of Vivarium's own, 126 if the command is not runnable, 127 if it was not found, 124 after --timeout. A second ctrl-C kills.",
  examples: [
    ["viv exec try -- npm test", "run the tests inside"],
    ["viv exec try -- sh -c 'cat > notes' < notes", "pass stdin on"],
    ["viv exec --user root try -- apt-get install -y jq", "change the clone's system, not yours"],
    ["viv exec -d try -- npm run dev", "leave it running; see `viv ps`, `viv logs`, `viv attach`"],
    ["viv exec -d -t try -- npm run dev", "the same on a terminal, for `viv attach` with keys and ctrl-C"],
    ["viv exec --json try -- git status", "output and exit code as JSON"],
  ],
  options: {
    ...RUN_OPTIONS,
    detach: { type: "flag", short: "d", summary: "Leave it running in the background and print its id" },
  },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    {
      name: "COMMAND",
      summary: "Program and arguments, after `--`",
      rest: "command-line",
      without: "`viv shell SANDBOX` opens a shell.",
    },
  ],
  async run({ options, positionals: [name = ""], rest, json, screen, cwd, env, caller, client }) {
    const server = await client();
    const sandbox = await server.call("findSandbox", { sandbox: name });
    const spec = commandSpec(sandbox, rest, options, { cwd, env, caller });
    if (!options.detach) return runInside(server, sandbox.id, spec, options, { screen, json, env, caller });
    const started = await server.call("runCommand", {
      sandbox: sandbox.id,
      ...spec,
      background: true,
      ...(options.tty ? { terminal: terminalSize(caller) } : {}),
    });
    if (json) screen.json(started);
    else screen.print(started.id);
    return 0;
  },
});
