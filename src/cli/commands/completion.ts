import { command } from "../command.ts";
import { completionScript, SHELLS } from "../completion.ts";
import { loadAll } from "../registry.ts";
import { usageError } from "../values.ts";

export default command({
  name: "completion",
  summary: "Print a completion script for your shell",
  examples: [
    ["source <(viv completion bash)", "for this bash; put the line into ~/.bashrc to keep it"],
    ["viv completion zsh > ~/.zfunc/_viv", "for zsh, with ~/.zfunc in fpath"],
    ["viv completion fish > ~/.config/fish/completions/viv.fish", "for fish"],
  ],
  options: {},
  positionals: [{ name: "SHELL", summary: "bash, zsh or fish", completes: SHELLS }],
  async run({ positionals: [name = ""], json, screen }) {
    const shell = SHELLS.find((each) => each === name);
    if (shell === undefined) throw usageError(`There is no completion for ${JSON.stringify(name)}; there is one for ${SHELLS.join(", ")}.`);
    const script = completionScript(shell, await loadAll());
    if (json) screen.json({ shell, script });
    else screen.print(script.trimEnd());
  },
});
