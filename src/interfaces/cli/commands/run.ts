import type { Client } from "../../client/client.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { command } from "../command.ts";
import { commandSpec, RUN_OPTIONS, runInside } from "../run-inside.ts";
import { usageError } from "../values.ts";
import { CREATE_OPTIONS, createInput, sayWhatIsMissing, warnIfUnwalled } from "./create.ts";

/** `viv run debian:12 bash` is a habit, too. */
function withoutImages(error: unknown): unknown {
  if (!(error instanceof VivError) || error.code !== "command_not_found") return error;
  const remedy = "Check the spelling, or install the program inside. There are no images: the first word is the program to run.";
  return new VivError(error.code, error.message, { cause: error, remedy });
}

/** The server may have removed it already, if this program was delayed. */
async function remove(server: Client, sandbox: string): Promise<void> {
  try {
    await server.call("removeSandbox", { sandbox });
  } catch (error) {
    if (!(error instanceof VivError) || error.code !== "not_found") throw error;
  }
}

export default command({
  name: "run",
  summary: "Run one command in a fresh clone and throw the clone away",
  details: "viv removes the clone when the command has ended. If viv itself is killed, the server ends the command and removes the clone.",
  examples: [
    ["viv run -- make test", "does it build from what is here? Nothing is left behind"],
    ["viv run --keep --name try -- npm install left-pad", "keep the clone to look at it"],
  ],
  options: {
    ...CREATE_OPTIONS,
    ...RUN_OPTIONS,
    rm: { type: "flag", summary: "Throw the clone away at the end; this is always done, the option is for habit" },
    keep: { type: "flag", short: "k", summary: "Keep the sandbox; its name is printed on stderr" },
  },
  positionals: [{ name: "COMMAND", summary: "Program and arguments, after `--`", rest: "command-line" }],
  async run({ options, rest, json, screen, cwd, env, caller, client }) {
    if (options.rm && options.keep) throw usageError("--rm and --keep are opposites.", "Leave one of them out.");
    const server = await client();
    const sandbox = await screen.during(
      "Cloning the machine",
      server.call("createSandbox", { ...createInput(options, { cwd, env }), held: !options.keep }),
    );
    warnIfUnwalled(screen, sandbox);
    sayWhatIsMissing(screen, sandbox);
    try {
      const spec = commandSpec(sandbox, rest, options, { cwd, env, caller });
      return await runInside(server, sandbox.id, spec, options, { screen, json, env, caller }).catch((error: unknown) => {
        throw withoutImages(error);
      });
    } finally {
      if (options.keep) screen.say(`viv: kept as ${sandbox.name}.`);
      else await remove(server, sandbox.id);
    }
  },
});
