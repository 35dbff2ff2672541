/** Entry of the command line: words in, exit code out. */
import type { VivError } from "../../base/schema/errors.ts";
import type { Client } from "../client/client.ts";
import { OWN_PROCESS } from "./caller.ts";
import type { CommandDeclaration } from "./command.ts";
import { adviceFor } from "./foreign-commands.ts";
import { invoke, quietPipes, type FindCommand } from "./invoke.ts";
import { nearest } from "./nearest.ts";
import { commandNames, loadCommand } from "./registry.ts";
import { Screen } from "./screen.ts";
import { usageError } from "./values.ts";

export async function main(argv: readonly string[]): Promise<number> {
  quietPipes(OWN_PROCESS, (code) => process.exit(code));
  const connection = new Connection();
  try {
    return await invoke(argv, find, {
      env: process.env,
      cwd: currentFolder,
      caller: OWN_PROCESS,
      client: (json) => connection.client(json),
    });
  } finally {
    connection.close();
  }
}

const find: FindCommand = async (argv, screen) => {
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
};

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
  #client: Promise<Client> | undefined;

  client(json: boolean): Promise<Client> {
    const screen = new Screen({ stdout: process.stdout, stderr: process.stderr, env: process.env, json });
    this.#client ??= import("./connect.ts").then(({ connect }) => connect(screen, process.env));
    return this.#client;
  }

  close(): void {
    // A connection that was never made needs no closing, and its failure has been reported.
    this.#client?.then((client) => client.close()).catch(() => undefined);
  }
}
