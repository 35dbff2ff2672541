import { resolve } from "node:path";
import { download, upload } from "../../client/copy/transfer.ts";
import { FrontCarrier } from "../carrier.ts";
import { command } from "../command.ts";
import { bytes, clean, plural } from "../text.ts";
import { usageError } from "../values.ts";

interface Side {
  readonly sandbox: string | undefined;
  readonly path: string;
}

/** "try:src/app" is inside; "./try:x" and "/try:x" are here. */
export function parseSide(word: string): Side {
  const match = /^([a-z0-9][a-z0-9-]{0,62}):(.*)$/s.exec(word);
  return match ? { sandbox: match[1], path: match[2] || "." } : { sandbox: undefined, path: word };
}

export default command({
  name: "cp",
  summary: "Copy files and folders into or out of a sandbox",
  details:
    "One side is SANDBOX:PATH; relative paths inside start at the project's folder. Files from a sandbox are written only below the destination: links that lead elsewhere, hard links and special files are left out and listed.",
  examples: [
    ["viv cp try:dist ./dist-from-try", "a folder out of the sandbox"],
    ["viv cp fix.patch try:/tmp/", "a file into it"],
    ["viv cp try:. copy/", "the whole project folder as it is inside"],
  ],
  options: { user: { type: "text", short: "u", value: "USER", summary: "User inside whose rights apply" } },
  positionals: [
    { name: "FROM", summary: "SANDBOX:PATH, or a path here", completes: "copy" },
    { name: "TO", summary: "SANDBOX:PATH, or a path here", completes: "copy" },
  ],
  async run({ options, positionals: [source = "", target = ""], json, screen, cwd, env, client }) {
    const from = parseSide(source);
    const to = parseSide(target);
    if ((from.sandbox === undefined) === (to.sandbox === undefined)) {
      throw usageError(
        "Exactly one side must be SANDBOX:PATH.",
        "For example `viv cp try:dist ./dist`; a local path with a colon starts with ./",
      );
    }
    const user = options.user === undefined ? {} : { user: options.user };
    const server = await client();
    const carrier = FrontCarrier.find(env);
    const work =
      from.sandbox !== undefined
        ? download(server, { path: from.path, sandbox: from.sandbox, ...user }, resolve(cwd, to.path), undefined, carrier)
        : upload(server, from.path, { path: to.path, sandbox: to.sandbox ?? "", ...user }, undefined, carrier);
    const report = await screen.during("Copying", work);
    if (json) return screen.json(report);
    for (const { path, why } of report.skipped) screen.warn(`viv: left out ${clean(path)}: ${why}.`);
    if (screen.terminal) screen.print(`${plural(report.files, "file")}, ${bytes(report.bytes)}, to ${clean(report.to)}`);
  },
});
