import { open } from "node:fs/promises";
import { VivError } from "../../../../base/schema/errors.ts";
import { command } from "../../command.ts";
import { FILE_OPTIONS, PATH, SANDBOX, withUser } from "../../file-options.ts";
import { bytes } from "../../text.ts";
import { usageError } from "../../values.ts";

/** Opens the file before anything is sent, so that a wrong name gives an error about the name. */
async function openHere(file: string): ReturnType<typeof open> {
  try {
    const handle = await open(file);
    if (!(await handle.stat()).isDirectory()) return handle;
    await handle.close();
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new VivError("file_not_found", `${file} can't be read: ${why}.`, { cause: error, remedy: "Check the path on this machine." });
  }
  throw new VivError("invalid_input", `${file} is a folder.`, { remedy: "Copy a folder with `viv cp`." });
}

export default command({
  name: "files put",
  summary: "Write a file in a sandbox, from stdin or from a file here",
  examples: [
    ["echo hello | viv files put try notes/hello.txt", "from stdin"],
    ["viv files put --from ./big.bin --parents try data/big.bin", "from a file, making missing folders"],
  ],
  options: {
    ...FILE_OPTIONS,
    from: { type: "text", short: "f", value: "FILE", completes: "path", summary: "Read this file instead of stdin" },
    mode: { type: "text", short: "m", value: "MODE", summary: "Permission bits, octal, such as 755" },
    parents: { type: "flag", short: "p", summary: "Make missing folders" },
  },
  positionals: [SANDBOX, PATH],
  async run({ options, positionals: [sandbox = "", path = ""], json, screen, client }) {
    if (options.mode !== undefined && !/^[0-7]{3,4}$/.test(options.mode)) throw usageError("--mode takes octal bits such as 644.");
    const mode = options.mode === undefined ? {} : { mode: Number.parseInt(options.mode, 8) };
    const source = options.from === undefined ? process.stdin : (await openHere(options.from)).createReadStream();
    const entry = await (await client()).writeFile(sandbox, path, source, { ...mode, parents: options.parents, ...withUser(options) });
    if (json) screen.json(entry);
    else screen.say(`${bytes(entry.size)} written.`);
  },
});
