import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";
import type { FileEntry } from "../../../base/schema/files.ts";
import type { Client } from "../../client/client.ts";
import { command } from "../command.ts";
import { requireDestination } from "../copy/destination.ts";
import { receiveFile, receiveFolder, type Skipped } from "../copy/receive.ts";
import { packFolder, type FoundLink } from "../copy/send.ts";
import { bytes, clean, plural } from "../text.ts";
import { usageError } from "../values.ts";

interface Side {
  readonly sandbox: string | undefined;
  readonly path: string;
}

interface Report {
  readonly to: string;
  readonly files: number;
  readonly bytes: number;
  readonly skipped: readonly Skipped[];
}

/** "try:src/app" is inside; "./try:x" and "/try:x" are here. */
export function parseSide(word: string): Side {
  const match = /^([a-z0-9][a-z0-9-]{0,62}):(.*)$/s.exec(word);
  return match ? { sandbox: match[1], path: match[2] || "." } : { sandbox: undefined, path: word };
}

/** The name a copy gets in a folder that exists; "" when the source means its content ("src/." or "/"). */
function nameOf(path: string): string {
  const name = path.endsWith("/.") ? "" : posix.basename(path);
  return name === "." || name === ".." ? "" : name;
}

async function download(
  client: Client,
  from: Required<Side> & { sandbox: string },
  target: string,
  user: { user?: string },
): Promise<Report> {
  const entry = await client.call("statFile", { sandbox: from.sandbox, path: from.path, ...user });
  const existing = await stat(target).catch(() => undefined);
  const to = existing?.isDirectory() ? join(target, nameOf(from.path)) : target;
  if (entry.type === "dir") {
    await requireDestination(to, "dir");
    const archive = await client.packFiles(from.sandbox, from.path, user.user);
    return { to, ...(await receiveFolder(to, archive)) };
  }
  if (entry.type !== "file") throw notCopied(entry, from.path);
  await requireDestination(to, "file");
  const { body } = await client.readFile(from.sandbox, from.path, user.user);
  const written = await receiveFile(to, body, { mode: Number.parseInt(entry.mode, 8), mtime: new Date(entry.modifiedAt) });
  return { to, files: 1, bytes: written, skipped: [] };
}

function notCopied(entry: FileEntry, path: string): VivError {
  const what = entry.type === "link" ? `a link to ${entry.target ?? "somewhere"}` : `a special file (${entry.type})`;
  return new VivError("invalid_input", `${path} is ${what}.`, { remedy: "Copy a file or a folder; of a link, copy what it leads to." });
}

async function upload(client: Client, source: string, to: Required<Side> & { sandbox: string }, user: { user?: string }): Promise<Report> {
  const found = await stat(source).catch((error: NodeJS.ErrnoException) => {
    throw new VivError("file_not_found", `${source} can't be read: ${error.code ?? error.message}.`, {
      cause: error,
      remedy: "Check the path on this machine.",
    });
  });
  const { sandbox } = to;
  const path = await targetInside(client, source, to, user);
  if (found.isFile()) {
    const entry = await client.writeFile(sandbox, path, createReadStream(source), { mode: found.mode & 0o777, ...user });
    return { to: `${sandbox}:${path}`, files: 1, bytes: entry.size, skipped: [] };
  }
  if (!found.isDirectory()) throw usageError(`${source} is a special file; copy a file or a folder.`);
  await client.call("makeFolder", { sandbox, path, parents: true, ...user });
  const packed = packFolder(resolve(source));
  const { files, bytes: size } = await client.unpackFiles(sandbox, path, packed.archive, user.user);
  const skipped = [...packed.skipped, ...(await makeLinks(client, sandbox, path, packed.links, user))];
  return { to: `${sandbox}:${path}`, files, bytes: size, skipped };
}

async function targetInside(client: Client, source: string, to: Side & { sandbox: string }, user: { user?: string }): Promise<string> {
  try {
    const entry = await client.call("statFile", { sandbox: to.sandbox, path: to.path, ...user });
    const name = source.endsWith("/.") ? "" : basename(resolve(source));
    return entry.type === "dir" ? posix.join(to.path, name) : to.path;
  } catch (error) {
    if (error instanceof VivError && error.code === "file_not_found") return to.path;
    throw error;
  }
}

const LINKS_AT_ONCE = 200;
const LINK_SCRIPT = 'cd -- "$1" || exit; shift; while [ $# -gt 1 ]; do ln -sfn -- "$1" "$2" || exit; shift 2; done';

/** Archives carry no links into a sandbox; a command inside makes them, with the rights of the user there. */
async function makeLinks(
  client: Client,
  sandbox: string,
  path: string,
  links: readonly FoundLink[],
  user: { user?: string },
): Promise<Skipped[]> {
  const skipped: Skipped[] = [];
  for (let start = 0; start < links.length; start += LINKS_AT_ONCE) {
    const batch = links.slice(start, start + LINKS_AT_ONCE);
    const words = batch.flatMap((link) => [link.target, `./${link.path}`]);
    const result = await client.call("runCommand", { sandbox, command: ["/bin/sh", "-c", LINK_SCRIPT, "sh", path, ...words], ...user });
    if (result.end?.exitCode !== 0) skipped.push(...batch.map((link) => ({ path: link.path, why: "the link could not be made" })));
  }
  return skipped;
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
  async run({ options, positionals: [source = "", target = ""], json, screen, cwd, client }) {
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
    const work =
      from.sandbox !== undefined
        ? download(server, { ...from, sandbox: from.sandbox }, resolve(cwd, to.path), user)
        : upload(server, from.path, { ...to, sandbox: to.sandbox ?? "" }, user);
    const report = await screen.during("Copying", work);
    if (json) return screen.json(report);
    for (const { path, why } of report.skipped) screen.warn(`viv: left out ${clean(path)}: ${why}.`);
    if (screen.terminal) screen.print(`${plural(report.files, "file")}, ${bytes(report.bytes)}, to ${clean(report.to)}`);
  },
});
