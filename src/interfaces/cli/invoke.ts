/** A command line from its words to its exit code, for whichever process it works. */
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import type { Client } from "../client/client.ts";
import type { Caller } from "./caller.ts";
import type { CommandDeclaration, Invocation } from "./command.ts";
import { parse } from "./parse.ts";
import { Screen } from "./screen.ts";

/** Commands that hand on the exit code of what they ran; a failure of ours must not look like one of theirs. */
const RUNS_COMMANDS: ReadonlySet<string> = new Set(["exec", "shell", "run", "attach"]);

type Outputs = Pick<Caller, "stdout" | "stderr">;

/** What a command line runs with. */
export interface Surroundings extends Pick<Invocation, "env" | "caller"> {
  /** A client of the server; whether results are JSON decides what is said of its start. */
  readonly client: (json: boolean) => Promise<Client>;
  /** Asked for when there is a command to run. */
  readonly cwd: () => string;
}

/** The command that the first words name, and the words after. Without one, help has been printed. */
export type FindCommand = (
  argv: readonly string[],
  screen: Screen,
) => Promise<{ readonly declaration?: CommandDeclaration; readonly words: readonly string[] }>;

export async function invoke(argv: readonly string[], find: FindCommand, around: Surroundings): Promise<number> {
  const screen = screenOf(around, wantsJson(argv));
  try {
    return await dispatch(argv, find, screen, around);
  } catch (error) {
    const failure = VivError.from(error);
    screen.error(failure);
    if (around.env["VIV_DEBUG"]) around.caller.stderr.write(`${failure.cause instanceof Error ? failure.cause.stack : failure.stack}\n`);
    return exitCode(failure, argv[0]);
  }
}

/** What a command line that breaks off says, and its exit code. */
export function brokenOff(argv: readonly string[], around: { readonly env: Invocation["env"]; readonly caller: Outputs }): number {
  const failure = new VivError("server_unreachable", "The connection to the server broke off before the command ended.");
  screenOf(around, wantsJson(argv)).error(failure);
  return exitCode(failure, argv[0]);
}

function screenOf(
  { caller: { stdout, stderr }, env }: { readonly env: Invocation["env"]; readonly caller: Outputs },
  json: boolean,
): Screen {
  return new Screen({ stdout, stderr, env, json });
}

/** Usage, 126, 127, timeout and cancelled keep their code everywhere; other failures around a command are 125. */
function exitCode(error: VivError, command: string | undefined): number {
  const code = ERRORS[error.code].exit;
  if (command === undefined || !RUNS_COMMANDS.has(command) || error.code === "usage") return code;
  return code >= 124 ? code : 125;
}

async function dispatch(argv: readonly string[], find: FindCommand, screen: Screen, around: Surroundings): Promise<number> {
  const { declaration, words } = await find(argv, screen);
  if (declaration === undefined) return 0;
  const parsed = parse(declaration, words);
  if (parsed.help) {
    const { printCommandHelp } = await import("./command-help.ts");
    printCommandHelp(screen, declaration);
    return 0;
  }
  const { positionals, rest, json } = parsed;
  const { env, caller, client } = around;
  const code = await declaration.run({
    // The parser made these from the command's own declarations.
    options: parsed.options as Invocation["options"],
    positionals,
    rest,
    json,
    // In `viv exec try ls --json` the option belongs to the inner command; only the parser knows that.
    screen: json ? screen : screenOf(around, false),
    env,
    cwd: around.cwd(),
    caller,
    client: () => client(json),
  });
  return code ?? 0;
}

/** Known before parsing, because a parse error is to be JSON too. Words after `--` belong to a command inside. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}

/** A reader that closes the pipe (`viv ls | head -1`) is no failure. If another listener exists, it has something to finish first. */
export function quietPipes({ stdout, stderr }: Caller, exit: (code: number) => void): void {
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      if (stream.listenerCount("error") === 1) exit(0);
    });
  }
}
