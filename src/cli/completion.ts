/** Completion scripts, generated from the declarations. Names of sandboxes are asked of a server that runs; none is started. */
import { COMMON_OPTIONS, type CommandDeclaration, type Offered, type OptionDeclarations } from "./command.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

const ask = (list: string): string => `VIV_NO_START=1 viv ${list} --quiet 2>/dev/null`;
const NAMES: Readonly<Record<Offered, string | undefined>> = {
  path: undefined,
  sandbox: ask("ls"),
  experiment: ask("experiments"),
  promotion: ask("promotions"),
  source: ["ls", "experiments", "promotions"].map(ask).join("; "),
};

function optionsOf(declaration: CommandDeclaration): OptionDeclarations {
  return { ...declaration.options, ...COMMON_OPTIONS };
}

function optionWords(declaration: CommandDeclaration): string[] {
  return Object.entries(optionsOf(declaration)).flatMap(([name, option]) =>
    option.short === undefined ? [`--${name}`] : [`--${name}`, `-${option.short}`],
  );
}

/** Single quotes for any shell of the three. */
function quote(text: string, shell: Shell): string {
  return shell === "fish" ? `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'` : `'${text.replaceAll("'", "'\\''")}'`;
}

function offers(declaration: CommandDeclaration): string {
  const kinds = declaration.positionals.map((positional) => positional.completes).filter((each) => each !== undefined);
  const words = kinds.filter((each) => typeof each !== "string").flat();
  const parts = [...optionWords(declaration), ...words];
  const dynamic = kinds
    .filter((each) => typeof each === "string")
    .flatMap((kind) => (NAMES[kind] === undefined ? [] : [`$(${NAMES[kind]})`]))
    .join(" ");
  return `"${parts.join(" ")} ${dynamic}"`;
}

function bash(commands: readonly CommandDeclaration[]): string {
  const first = [...new Set(commands.map((each) => each.name.split(" ")[0]))];
  const groups = first.filter((name) => commands.some((each) => each.name.startsWith(`${name} `)));
  const cases = commands.map((each) => `    ${quote(each.name, "bash")}) words=${offers(each)} ;;`);
  const groupCases = groups.map((group) => {
    const words = commands.filter((each) => each.name.startsWith(`${group} `)).map((each) => each.name.split(" ")[1]);
    return `    ${group}) if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$current")); return; fi; name="${group} \${COMP_WORDS[2]}" ;;`;
  });
  return `# viv completion for bash: source <(viv completion bash)
_viv() {
  local current="\${COMP_WORDS[COMP_CWORD]}" name="\${COMP_WORDS[1]}" words="" index
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${first.join(" ")}" -- "$current")); return; fi
  for ((index = 2; index < COMP_CWORD; index++)); do
    # What follows -- is a command line inside.
    if [ "\${COMP_WORDS[index]}" = "--" ]; then COMPREPLY=($(compgen -c -- "$current")); return; fi
  done
  case "$name" in
${groupCases.join("\n")}
  esac
  case "$name" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _viv viv
`;
}

function zsh(commands: readonly CommandDeclaration[]): string {
  return `#compdef viv
# viv completion for zsh: source <(viv completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`;
}

function fish(commands: readonly CommandDeclaration[]): string {
  const lines = ["# viv completion for fish: viv completion fish | source", "complete -c viv -f"];
  const first = new Map<string, string>();
  for (const each of commands) {
    const [word = "", second] = each.name.split(" ");
    if (second === undefined) first.set(word, each.summary);
    else if (!first.has(word)) first.set(word, "Files inside a sandbox");
  }
  for (const [word, summary] of first) lines.push(`complete -c viv -n __fish_use_subcommand -a ${word} -d ${quote(summary, "fish")}`);
  for (const each of commands) {
    const [word = "", second] = each.name.split(" ");
    const seen = `__fish_seen_subcommand_from ${word}`;
    const when = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
    if (second !== undefined) lines.push(`complete -c viv -n ${quote(seen, "fish")} -a ${second} -d ${quote(each.summary, "fish")}`);
    lines.push(...fishOffers(each, quote(when, "fish")));
  }
  return `${lines.join("\n")}\n`;
}

function fishOffers(declaration: CommandDeclaration, when: string): string[] {
  const lines: string[] = [];
  for (const [name, option] of Object.entries(optionsOf(declaration))) {
    const short = option.short === undefined ? "" : ` -s ${option.short}`;
    lines.push(`complete -c viv -n ${when} -l ${name}${short}${option.type === "flag" ? "" : " -r"} -d ${quote(option.summary, "fish")}`);
  }
  for (const { completes } of declaration.positionals) {
    if (completes === undefined) continue;
    if (completes === "path") lines.push(`complete -c viv -n ${when} -F`);
    else
      lines.push(
        `complete -c viv -n ${when} -a ${typeof completes === "string" ? `'(${NAMES[completes] ?? ""})'` : quote(completes.join(" "), "fish")}`,
      );
  }
  return lines;
}

export function completionScript(shell: Shell, commands: readonly CommandDeclaration[]): string {
  return { bash, zsh, fish }[shell](commands);
}
