import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { VivError } from "../../../../base/schema/errors.ts";
import { command } from "../../command.ts";
import { clean } from "../../text.ts";

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new VivError("invalid_input", `${path} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}.`, {
      cause: error,
    });
  }
}

export default command({
  name: "policy import",
  summary: "Convert the permission block of an opencode.json",
  details:
    "Prints the value for `policy` in vivarium.json. In OpenCode the last rule that matches wins, here the most specific one; the command warns where this makes a difference.",
  examples: [["viv policy import opencode.json", "rules on stdout, warnings on stderr"]],
  options: {},
  positionals: [{ name: "FILE", summary: "An opencode.json", completes: "path" }],
  async run({ positionals: [file = ""], json, screen, cwd, client }) {
    const answer = await (await client()).call("importPolicy", { text: await textOf(resolve(cwd, file)) });
    if (json) return screen.json(answer);
    for (const warning of answer.warnings) screen.say(clean(warning));
    for (const line of JSON.stringify({ policy: answer.policy }, null, 2).split("\n")) screen.print(line);
  },
});
