/** docs/CLI.md, rendered from the declarations. `node src/interfaces/cli/docs.ts > docs/CLI.md` writes it; a test compares. */
import { COMMON_OPTIONS, longLabel, usageOf, type CommandDeclaration, type OptionDeclaration } from "./command.ts";
import { sentence } from "./command-help.ts";
import { EXIT_CODES } from "./help.ts";
import { GROUPS, loadAll } from "./registry.ts";

const INTRODUCTION = `# The command line

\`viv COMMAND [options]\`. This page is rendered from the declarations of the commands; so are \`viv COMMAND --help\` and the completion scripts.

- **Output.** Results go to stdout, remarks to stderr. Tables and colours are for people: colours only on a terminal, and not with \`NO_COLOR\`. Control characters in names, paths and commands are shown as escapes.
- **\`--json\`.** One JSON value on stdout and nothing else. An error is \`{"error":{"code","message","remedy"}}\` on stdout, too, and the exit code tells; without \`--json\` errors are text on stderr. Commands that go on until ctrl-C (\`events -f\`, \`files watch\`) print one value per line.
- **The server** is started by the first command that needs it. \`VIV_NO_START=1\` forbids that.
- **Folders.** State: \`$VIV_HOME\`, else \`/var/lib/vivarium\` for root, else \`\${XDG_STATE_HOME:-~/.local/state}/vivarium\`. The user's own config: \`$VIV_CONFIG\`, else \`/etc/vivarium/config.json\` for root, else \`\${XDG_CONFIG_HOME:-~/.config}/vivarium/config.json\`.
- **Prompts.** Without a terminal nothing prompts.
`;

function label(name: string, option: OptionDeclaration): string {
  const long = longLabel(name, option);
  return option.short === undefined ? `\`${long}\`` : `\`-${option.short}\`, \`${long}\``;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function section(declaration: CommandDeclaration): string {
  const lines = [`### viv ${declaration.name}`, "", `${declaration.summary}.`, ""];
  if (declaration.details !== undefined) lines.push(declaration.details, "");
  lines.push("```", usageOf(declaration), "```", "");
  const rows = [
    ...declaration.positionals.map((each) => row([`\`${each.name}\``, sentence(each.summary)])),
    ...Object.entries(declaration.options).map(([name, option]) => row([label(name, option), sentence(option.summary)])),
  ];
  if (rows.length > 0) lines.push(row(["argument or option", "meaning"]), "|---|---|", ...rows, "");
  lines.push("```sh", ...declaration.examples.flatMap(([line, what]) => [`# ${what}`, line]), "```", "");
  return lines.join("\n");
}

export async function renderDocs(): Promise<string> {
  const commands = new Map((await loadAll()).map((each) => [each.name, each]));
  const parts = [INTRODUCTION];
  parts.push(
    [
      "Every command has:",
      "",
      ...Object.entries(COMMON_OPTIONS).map(([name, option]) => `- ${label(name, option)}: ${sentence(option.summary)}`),
      "",
    ].join("\n"),
  );
  parts.push(
    [
      "## Exit codes",
      "",
      row(["code", "meaning"]),
      "|---|---|",
      ...EXIT_CODES.map(row),
      "",
      "`viv exec`, `viv shell`, `viv run` and `viv attach` return the command's own code.",
      "",
    ].join("\n"),
  );
  for (const group of GROUPS) {
    parts.push(`## ${group.title}\n`);
    for (const name of Object.keys(group.commands)) {
      const declaration = commands.get(name);
      if (declaration) parts.push(section(declaration));
    }
  }
  return `${parts.join("\n").trimEnd()}\n`;
}

if (import.meta.main) process.stdout.write(await renderDocs());
