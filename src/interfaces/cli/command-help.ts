/** Help about one command. It knows no other one, so that it can be shown where the others are not loaded. */
import { COMMON_OPTIONS, longLabel, usageOf, type CommandDeclaration, type OptionDeclaration } from "./command.ts";
import type { Screen } from "./screen.ts";
import { fields } from "./table.ts";

/** "-u, --user USER". */
export function optionLabel(name: string, option: OptionDeclaration): string {
  const short = option.short === undefined ? "    " : `-${option.short}, `;
  return short + longLabel(name, option);
}

export function printCommandHelp(screen: Screen, declaration: CommandDeclaration): void {
  const title = (text: string): void => screen.print(`\n${screen.paint("bold", text)}`);
  screen.print(`${declaration.summary}.`);
  if (declaration.details !== undefined) screen.print(`\n${wrap(declaration.details)}`);
  title("Usage");
  screen.print(`  ${usageOf(declaration)}`);
  if (declaration.positionals.length > 0) {
    title("Arguments");
    for (const line of fields(declaration.positionals.map((each) => [`  ${each.name}`, `${each.summary}.`]))) screen.print(line);
  }
  title("Options");
  const options = Object.entries({ ...declaration.options, ...COMMON_OPTIONS });
  for (const line of fields(options.map(([name, option]) => [`  ${optionLabel(name, option)}`, sentence(option.summary)])))
    screen.print(line);
  title("Examples");
  for (const [line, what] of declaration.examples) {
    screen.print(`  ${screen.paint("dim", `# ${what}`)}`);
    screen.print(`  ${line}`);
  }
}

export function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

function wrap(text: string, columns = 88): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > columns) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
