/** Entry of the command line: words in, exit code out. */
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import type { Client } from "../client/client.ts";
import type { CommandDeclaration, Invocation } from "./command.ts";
import { adviceFor } from "./foreign-commands.ts";
import { nearest } from "./nearest.ts";
import { parse, type Parsed } from "./parse.ts";
import { commandNames, loadCommand } from "./registry.ts";
import { Screen } from "./screen.ts";
import { usageError } from "./values.ts";

/** Commands that hand on the exit code of what they ran; a failure of ours must not look like one of theirs. */
const RUNS_COMMANDS: ReadonlySet<string> = new Set(["exec", "shell", "run", "attach"]);

export async function main(argv: readonly string[]): Promise<number> {
  quietPipes();
  const json = wantsJson(argv);
  const screen = new Screen({ stdout: process.stdout, stderr: process.stderr, env: process.env, json });
  try {
    return await dispatch(argv, screen);
  } catch (error) {
    const failure = VivError.from(error);
    screen.error(failure);
    if (process.env["VIV_DEBUG"]) process.stderr.write(`${failure.cause instanceof Error ? failure.cause.stack : failure.stack}\n`);
    return exitCode(failure, argv[0]);
  }
}

/** Usage, 126, 127, timeout and cancelled keep their code everywhere; other failures around a command are 125. */
function exitCode(error: VivError, command: string | undefined): number {
  const code = ERRORS[error.code].exit;
  if (command === undefined || !RUNS_COMMANDS.has(command) || error.code === "usage") return code;
  return code >= 124 ? code : 125;
}

async function dispatch(argv: readonly string[], screen: Screen): Promise<number> {
  const { declaration, words } = await find(argv, screen);
  if (declaration === undefined) return 0;
  const parsed = parse(declaration, words);
  if (parsed.help) {
    const { printCommandHelp } = await import("./help.ts");
    printCommandHelp(screen, declaration);
    return 0;
  }
  // In `viv exec try ls --json` the option belongs to the inner command; only the parser knows that.
  const asParsed = parsed.json ? screen : new Screen({ stdout: process.stdout, stderr: process.stderr, env: process.env, json: false });
  const connection = new Connection(asParsed);
  try {
    return (await declaration.run(invocation(parsed, asParsed, connection))) ?? 0;
  } finally {
    connection.close();
  }
}

/** The command that the first words name, and the words after. Without one, help has been printed. */
async function find(argv: readonly string[], screen: Screen): Promise<{ declaration?: CommandDeclaration; words: readonly string[] }> {
  const [first, second] = argv;
  if (first === undefined || first === "--help" || first === "-h") return { declaration: await known("help"), words: argv.slice(1) };
  if (first === "--version" || first === "-V") return { declaration: await known("version"), words: argv.slice(1) };
  const longer = second === undefined ? undefined : await loadCommand(`${first} ${second}`);
  if (longer) return { declaration: longer, words: argv.slice(2) };
  const declaration = await loadCommand(first);
  if (declaration) return { declaration, words: argv.slice(1) };
  const below = commandNames().filter((name) => name.startsWith(`${first} `));
  if (below.length === 0)
    throw unknownCommand(
      first,
      commandNames().map((name) => name.split(" ")[0] ?? name),
    );
  if (second === undefined || second === "--help" || second === "-h") {
    const { printGroup } = await import("./help.ts");
    printGroup(screen, first, await Promise.all(below.map(known)));
    return { words: [] };
  }
  throw unknownCommand(`${first} ${second}`, below);
}

async function known(name: string): Promise<CommandDeclaration> {
  const declaration = await loadCommand(name);
  if (!declaration) throw usageError(`There is no command ${name}.`);
  return declaration;
}

function unknownCommand(word: string, candidates: readonly string[]): VivError {
  const advice = adviceFor(word);
  if (advice !== undefined) return usageError(`There is no command ${JSON.stringify(word)}.`, advice);
  const near = nearest(word, [...new Set(candidates)]);
  const hint = near === undefined ? "" : ` Did you mean \`viv ${near}\`?`;
  return usageError(`There is no command ${JSON.stringify(word)}.${hint}`, "`viv help` lists the commands.");
}

function invocation(parsed: Parsed, screen: Screen, connection: Connection): Invocation {
  return {
    // The parser made these from the command's own declarations.
    options: parsed.options as Invocation["options"],
    positionals: parsed.positionals,
    rest: parsed.rest,
    json: parsed.json,
    screen,
    env: process.env,
    cwd: currentFolder(),
    client: () => connection.client(),
  };
}

/** A shell can stand in a folder that has been removed; most commands do not care. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return process.env["PWD"] ?? "/";
  }
}

/** The client, made when first asked for. */
class Connection {
  readonly #screen: Screen;
  #client: Promise<Client> | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  client(): Promise<Client> {
    this.#client ??= import("./connect.ts").then(({ connect }) => connect(this.#screen, process.env));
    return this.#client;
  }

  close(): void {
    // A connection that was never made needs no closing, and its failure has been reported.
    this.#client?.then((client) => client.close()).catch(() => undefined);
  }
}

/** Known before parsing, because a parse error is to be JSON too. Words after `--` belong to a command inside. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).includes("--json");
}

/** A reader that closes the pipe (`viv ls | head -1`) is no failure. If another listener exists, it has something to finish first. */
function quietPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      if (stream.listenerCount("error") === 1) process.exit(0);
    });
  }
}
