import { command, type Invocation } from "../command.ts";
import { completionScript, FILES, PROGRAMS, SHELLS } from "../completion.ts";
import { connectIfRunning } from "../connect.ts";
import { knownNames } from "../known-names.ts";
import { nextOffer, type Offer } from "../offers.ts";
import { commandNames, loadCommand } from "../registry.ts";
import { clean } from "../text.ts";
import { usageError } from "../values.ts";

const options = {
  describe: { type: "flag", summary: "words: what each is, too, behind a tab" },
} as const;

/** Names that a running server knows. No server is started for that, and without one there are no names. */
async function knownOf({ known }: Offer, env: Invocation["env"]): Promise<string[]> {
  if (known === undefined) return [];
  const client = await connectIfRunning(env);
  try {
    const names = client === undefined ? [] : await knownNames(client, known);
    return names.filter((name) => !known.before.includes(name));
  } catch {
    return [];
  } finally {
    client?.close();
  }
}

async function offered({ options: { describe }, rest, env }: Invocation<typeof options>): Promise<string[]> {
  const offer = await nextOffer(rest, { names: commandNames(), load: loadCommand });
  const { prefix } = offer;
  const current = rest.at(-1) ?? "";
  const typed = prefix === undefined || current === "=" ? current.replace(/^=$/, "") : current.slice(prefix.length);
  const known = (await knownOf(offer, env)).map((word) => ({ word, summary: undefined }));
  const fitting = [...offer.candidates, ...known].filter(({ word }) => word.startsWith(typed));
  return [
    ...(offer.files === true ? [FILES] : []),
    ...(offer.programs === true ? [PROGRAMS] : []),
    ...fitting.map(({ word, summary }) => {
      const shown = clean(`${prefix ?? ""}${word}`);
      return describe && summary !== undefined ? `${shown}\t${clean(summary)}` : shown;
    }),
  ];
}

export default command({
  name: "completion",
  summary: "Print a completion script for your shell",
  details:
    "The script asks `viv completion words` what fits each place: commands, options, their values, and names that a running server knows.",
  examples: [
    ["source <(viv completion bash)", "for this bash; put the line into ~/.bashrc to keep it"],
    ["viv completion zsh > ~/.zfunc/_viv", "for zsh, with ~/.zfunc in fpath"],
    ["viv completion fish > ~/.config/fish/completions/viv.fish", "for fish"],
    ["viv completion words -- diff --st", "what could come next, a line each"],
  ],
  options,
  positionals: [
    { name: "SHELL", summary: "bash, zsh or fish; words for what could come next", completes: [...SHELLS, "words"] },
    { name: "WORD", summary: "words: those after viv, the last one as far as it is typed", optional: true, rest: "command-line" },
  ],
  async run(invocation) {
    const { positionals, rest, json, screen } = invocation;
    const [name = ""] = positionals;
    if (name === "words") {
      const words = await offered(invocation);
      if (json) screen.json({ words });
      else for (const word of words) screen.print(word);
      return;
    }
    const shell = SHELLS.find((each) => each === name);
    if (shell === undefined) throw usageError(`There is no completion for ${JSON.stringify(name)}; there is one for ${SHELLS.join(", ")}.`);
    if (rest.length > 0)
      throw usageError(`The script for ${shell} takes no words.`, "`viv completion words -- WORD...` says what could come next.");
    const script = completionScript(shell);
    if (json) screen.json({ shell, script });
    else screen.print(script.trimEnd());
  },
});
