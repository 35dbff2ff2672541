import { command } from "../command.ts";
import { commandSpec, RUN_OPTIONS, runInside } from "../run-inside.ts";
import { CREATE_OPTIONS, createInput, sayIfUntrusted, warnIfUnwalled } from "./create.ts";

export default command({
  name: "run",
  summary: "Run one command in a fresh clone and throw the clone away",
  examples: [
    ["viv run -- make test", "does it build from what is here? Nothing is left behind"],
    ["viv run --keep --name try -- npm install left-pad", "keep the clone to look at it"],
  ],
  options: {
    ...CREATE_OPTIONS,
    ...RUN_OPTIONS,
    keep: { type: "flag", short: "k", summary: "Keep the sandbox; its name is printed on stderr" },
  },
  positionals: [{ name: "COMMAND", summary: "Program and arguments, after `--`", rest: "command-line" }],
  async run({ options, rest, json, screen, cwd, env, client }) {
    const server = await client();
    const sandbox = await screen.during("Cloning the machine", server.call("createSandbox", createInput(options, { cwd, env })));
    warnIfUnwalled(screen, sandbox);
    sayIfUntrusted(screen, sandbox);
    try {
      return await runInside(server, sandbox.id, commandSpec(sandbox, rest, options, { cwd, env }), options, { screen, json, env });
    } finally {
      if (options.keep) screen.say(`viv: kept as ${sandbox.name}.`);
      else await server.call("removeSandbox", { sandbox: sandbox.id });
    }
  },
});
