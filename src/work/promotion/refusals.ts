/** Paths that no commit of ours may hold, or that git would not hold as the bytes they are. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import { VivError } from "../../base/schema/errors.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { PathChange } from "./index-file.ts";
import type { ProjectGit } from "./project-git.ts";

const MODES = ["100644", "100755", "120000"];
const GITLINK = "160000";
/** Names that some file system takes for `.git`: by case, by short name, by characters that it leaves out. */
const GIT_FOLDER = /^(?:\.git[. ]*(?:$|:)|git~\d+[. ]*$)/i;
const LEFT_OUT = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const MOST_NAMED = 10;
/** Attributes by which git stores other bytes than those of the file. */
const CONVERTING = ["filter", "working-tree-encoding"];

/** `files` are those of the parent. */
export function requirePlainPaths(changes: readonly PathChange[], files: ReadonlyMap<string, StoredFile>): void {
  const links = new Set([...files].filter(([, file]) => file.mode === GITLINK).map(([path]) => path));
  const inside = changes.filter(({ path }) => withFoldersAbove(path.toString("latin1")).some((each) => links.has(each)));
  refuse(inside, "in a submodule", "Make the change in the submodule's own repository.");
  const odd = changes.filter(({ path, to }) => !isPlain(path) || (to !== null && !MODES.includes(to.mode)));
  refuse(odd, "not a file that a commit can hold", "Leave it out with `--only`.");
}

function isPlain(path: Buffer): boolean {
  const parts = decodePath(path).split("/");
  return parts.every((part) => part !== "" && part !== "." && part !== ".." && !GIT_FOLDER.test(part.replace(LEFT_OUT, "")));
}

function withFoldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function refuse(changes: readonly { readonly path: Buffer }[], why: string, remedy: string): void {
  if (changes.length === 0) return;
  const named = changes.slice(0, MOST_NAMED).map(({ path }) => JSON.stringify(decodePath(path)));
  const more = changes.length > MOST_NAMED ? ` and ${changes.length - MOST_NAMED} more` : "";
  const verb = changes.length === 1 ? "is" : "are";
  throw new VivError("unsupported", `A branch can't hold this change: ${named.join(", ")}${more} ${verb} ${why}.`, { remedy });
}

/** As the user's own git would see the paths: the checkout's attributes, and those in their settings. */
export async function requireUnfilteredByUser(project: ProjectGit, prefix: Buffer, changes: readonly PathChange[]): Promise<void> {
  // Its paths are relative to the project's folder, as git runs there.
  const paths = changes.map(({ path }) => path.subarray(prefix.length));
  const { code, stdout, stderr } = await project.ask(["check-attr", "-z", "--stdin", ...CONVERTING], {
    input: [listOf(paths)],
    userSettings: true,
  });
  if (code !== 0) throw new VivError("internal", `git check-attr did not end well: ${stderr}`);
  refuseConverted(stdout);
}

/** As the tree in the store's index says. */
export async function requireUnfiltered(store: GitStore, changes: readonly PathChange[]): Promise<void> {
  const folder = await attributeFolder(store);
  const { stdout } = await store.git(["check-attr", "-z", "--cached", "--stdin", ...CONVERTING], {
    input: [listOf(changes.map(({ path }) => path))],
    env: { GIT_DIR: folder, GIT_OBJECT_DIRECTORY: store.objects, GIT_INDEX_FILE: store.index },
  });
  refuseConverted(stdout);
}

/** The store's own attributes say that nothing is said, so they are asked for from a folder that has none. */
async function attributeFolder(store: GitStore): Promise<string> {
  const folder = join(store.folder, "attributes");
  await mkdir(join(folder, "refs"), { recursive: true, mode: 0o700 });
  await mkdir(join(folder, "objects"), { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/none\n");
  const { stdout } = await store.git(["rev-parse", "--show-object-format"]);
  await writeFile(
    join(folder, "config"),
    `[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = ${stdout.toString()}`,
  );
  return folder;
}

function listOf(paths: readonly Buffer[]): Buffer {
  return Buffer.concat(paths.flatMap((path) => [path, Buffer.of(0)]));
}

/** Rows of path, attribute and value. */
function refuseConverted(output: Buffer): void {
  const parts = output.toString("latin1").split("\0");
  const converted = new Map<string, { path: Buffer }>();
  for (let at = 0; at + 2 < parts.length; at += 3) {
    const [path = "", , value = ""] = parts.slice(at, at + 3);
    if (value !== "unspecified" && value !== "unset") converted.set(path, { path: Buffer.from(path, "latin1") });
  }
  refuse(
    [...converted.values()],
    "stored by way of a filter, such as Git LFS",
    "Commit it with your own git; `viv promote` brings the files.",
  );
}
