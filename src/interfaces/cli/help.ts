/** Help about all commands, rendered from the declarations. */
import type { CommandDeclaration } from "./command.ts";
import { GROUPS, loadAll } from "./registry.ts";
import type { Screen } from "./screen.ts";
import { fields } from "./table.ts";

export const EXIT_CODES = [
  ["0", "done"],
  ["1", "a check failed, or there is no winner"],
  ["2", "wrong usage, or a name that does not exist"],
  ["3", "conflict: taken name, wrong state, operation under way"],
  ["4", "approval needed, or denied"],
  ["5", "no capacity: memory, disk or count"],
  ["124", "time limit reached"],
  ["125", "a failure of Vivarium's own"],
  ["126", "exec: the command is not runnable"],
  ["127", "exec: the command was not found"],
  ["130", "cancelled"],
] as const;

const NAME_COLUMNS = 11;

/** Words of one command group, such as `files`, as one line each. */
export function printGroup(screen: Screen, name: string, commands: readonly CommandDeclaration[]): void {
  screen.print(`Usage: viv ${name} COMMAND`);
  screen.print();
  for (const line of fields(commands.map((each) => [`  ${each.name}`, each.summary]))) screen.print(line);
  screen.print();
  screen.print(`See \`viv ${name} COMMAND --help\`.`);
}

export async function printOverview(screen: Screen): Promise<void> {
  const commands = new Map((await loadAll()).map((each) => [each.name, each]));
  screen.print("viv gives you an instant, disposable clone of this machine.");
  screen.print("\nUsage: viv COMMAND [options]");
  for (const group of GROUPS) {
    screen.print(`\n${screen.paint("bold", group.title)}`);
    const lines = new Map<string, string>();
    for (const name of Object.keys(group.commands)) {
      const [first = name, second] = name.split(" ");
      lines.set(first, second === undefined ? (commands.get(name)?.summary ?? "") : [lines.get(first), second].filter(Boolean).join(", "));
    }
    for (const [name, summary] of lines) screen.print(`  ${name.padEnd(NAME_COLUMNS)}  ${summary}`);
  }
  screen.print(`\n${screen.paint("bold", "A first tour")}`);
  screen.print("  cd my-project");
  screen.print("  viv create --name try       # a clone of this machine, with the project in it");
  screen.print("  viv exec try -- make test   # runs inside, in this folder, as you");
  screen.print("  viv diff try                # what it changed; reality is as it was");
  screen.print("  viv rm try");
  screen.print("  viv try './a.sh' './b.sh' --check 'make test'   # several ways at once: which one works?");
  screen.print("\nEvery command takes --help and --json. `viv help exit-codes` lists the exit codes.");
}

export function printExitCodes(screen: Screen): void {
  screen.print("Exit codes of viv. `viv exec`, `viv shell`, `viv run` and `viv attach` return the command's own.\n");
  for (const line of fields(EXIT_CODES.map(([code, meaning]) => [`  ${code}`, meaning]))) screen.print(line);
}
