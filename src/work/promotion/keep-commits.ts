/**
 * Commits made inside a sandbox, made again on the real repository's commit. The sandbox's own git writes them as a bundle; its
 * objects are checked, and only trees, authors and messages are taken from them. A commit can hold no path that the promoted
 * change does not hold: what was committed and taken back, or is ignored, does not come along in the history.
 */
import type { GitStore } from "../../machine/merge/store.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { openBundle } from "./bundle.ts";
import { cleanText, oneLine } from "./commit-message.ts";
import { commitTree, type ChangedTree } from "./commit.ts";
import { filesOf, isSame, treeWith, type PathChange } from "./index-file.ts";
import { requirePlainPaths } from "./refusals.ts";
import type { Identity } from "./project-git.ts";

/** Runs a command in the project's folder inside the sandbox; its standard output, or an error if it ends badly. */
export type RunInside = (command: readonly string[]) => AsyncIterable<Uint8Array>;

export interface KeptCommit {
  readonly id: string;
  /** As it was inside. */
  readonly from: string;
  readonly subject: string;
  readonly author: Identity;
}

interface ReplayRequest {
  readonly store: GitStore;
  readonly run: RunInside;
  readonly parent: string;
  readonly changed: ChangedTree;
  readonly user: Identity;
  readonly coAuthor: string | undefined;
}

interface Replay {
  readonly tip: string;
  /** Of the tip; empty where nothing was replayed. */
  readonly tree: string;
  readonly kept: readonly KeptCommit[];
  readonly notes: readonly string[];
}

const MOST_COMMITS = 200;
const MOST_BUNDLE_BYTES = 512 * 1024 ** 2;
/** No forge takes a longer one. */
const MOST_FILE_BYTES = 100 * 1024 ** 2;
const MOST_NAME_CHARACTERS = 100;

export async function keepCommits(request: ReplayRequest): Promise<Replay> {
  const { store, run, parent, changed } = request;
  const head = (await readAll(run(["git", "rev-parse", "--verify", "HEAD"]))).trim();
  if (head === parent) return { tip: parent, tree: "", kept: [], notes: ["No commit was made inside."] };
  const bundle = await openBundle(run(["git", "bundle", "create", "-q", "-", "HEAD", `^${parent}`]), MOST_BUNDLE_BYTES);
  await takePack(store, bundle.pack);
  const ids = await commitsOf(store, parent, bundle.tip);
  let tip = parent;
  let tree = "";
  const kept: KeptCommit[] = [];
  for (const from of ids) {
    const next = await treeOf(store, parent, from, changed);
    const before = tree === "" ? await treeWith(store, parent, []) : tree;
    if (next === before) continue;
    const { author, date, message } = parseCommit(await catCommit(store, from), request.user);
    const trailer = request.coAuthor === undefined ? "" : `\nCo-authored-by: ${oneLine(request.coAuthor)}\n`;
    tip = await commitTree(store, {
      tree: next,
      parents: [tip],
      message: `${message}\n${trailer}`,
      author,
      ...(date === undefined ? {} : { date }),
      committer: request.user,
    });
    tree = next;
    kept.push({ id: tip, from, subject: message.split("\n")[0] ?? "", author });
  }
  return { tip, tree, kept, notes: notesOf(ids.length, kept.length, changed) };
}

function notesOf(made: number, kept: number, { edited }: ChangedTree): string[] {
  const empty = made - kept;
  return [
    ...(empty > 0 ? [`${empty} of ${made} commits made inside change nothing of what is promoted, and are left out.`] : []),
    ...(edited.size > 0 ? ["Files that you had edited without committing come in the last commit, with the sandbox's part alone."] : []),
  ];
}

/** Git looks at every object of the pack before it is one of the store's; memory that a crafted one could ask for is bounded. */
async function takePack(store: GitStore, pack: AsyncIterable<Uint8Array>): Promise<void> {
  const settings = ["-c", "core.packedGitWindowSize=32m", "-c", "core.packedGitLimit=256m", "-c", "pack.windowMemory=64m"];
  const args = [...settings, "index-pack", "--stdin", "--fix-thin", "--strict", `--max-input-size=${MOST_BUNDLE_BYTES}`];
  try {
    await store.git(args, { input: pack, mostMemoryBytes: 4 * 1024 ** 3 });
  } catch (cause) {
    if (cause instanceof VivError && cause.code !== "internal") throw cause;
    throw new VivError("unsupported", "The commits made inside do not pass git's checks, and are not taken.", {
      cause,
      remedy: "Promote without `--keep-commits`: the files are the same.",
    });
  }
}

/** Oldest first, along the first parents: a merge made inside becomes one commit. */
async function commitsOf(store: GitStore, parent: string, tip: string): Promise<string[]> {
  const args = ["rev-list", "--first-parent", "--reverse", "--parents", `--max-count=${MOST_COMMITS + 1}`, tip, `^${parent}`];
  const { stdout } = await store.git(args);
  const rows = stdout
    .toString()
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  if (rows.length > MOST_COMMITS) throw new VivError("too_large", `More than ${MOST_COMMITS} commits were made inside.`);
  if (rows[0]?.[1] !== parent)
    throw new VivError("unsupported", "The commits made inside do not begin with the commit that the sandbox began with.", {
      remedy: "Promote without `--keep-commits`: the files are the same.",
    });
  return rows.map(([id = ""]) => id);
}

/** The parent's tree, with this commit's state of the paths that the change holds and the user had not edited. */
async function treeOf(store: GitStore, parent: string, commit: string, { paths, edited, files }: ChangedTree): Promise<string> {
  const there = await filesOf(store, commit);
  const changes = [...paths]
    .filter((path) => !edited.has(path) && !isSame(files.get(path), there.get(path)))
    .map((path): PathChange => ({ path: Buffer.from(path, "latin1"), to: there.get(path) ?? null }));
  requirePlainPaths(changes, files);
  await requireModest(store, changes);
  return treeWith(store, parent, changes);
}

/** A small pack can hold contents of any length. */
async function requireModest(store: GitStore, changes: readonly PathChange[]): Promise<void> {
  const ids = changes.flatMap(({ to }) => to?.id ?? []);
  if (ids.length === 0) return;
  const { stdout } = await store.git(["cat-file", "--batch-check=%(objectsize)"], { input: [Buffer.from(`${ids.join("\n")}\n`)] });
  const sizes = stdout.toString().trim().split("\n").map(Number);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.some((size) => !(size <= MOST_FILE_BYTES)) || total > LIMITS.maxPatchBytes)
    throw new VivError("too_large", "The commits made inside hold contents that are longer than a replay takes.", {
      remedy: "Promote without `--keep-commits`: the files are the same.",
    });
}

async function catCommit(store: GitStore, id: string): Promise<string> {
  const { stdout } = await store.git(["cat-file", "commit", id]);
  return stdout.toString();
}

/** Author and message, cleaned; the committer is the user, and a signature would not fit any more. */
function parseCommit(text: string, user: Identity): { author: Identity; date: string | undefined; message: string } {
  const end = text.indexOf("\n\n");
  const header = text.slice(0, end);
  const [, name = "", email = "", seconds, zone] = /^author (.*?) ?<([^>]*)> (\d{1,11}) ([+-]\d{4})$/m.exec(header) ?? [];
  const plain = (part: string): string => oneLine(part.replace(/[<>]/g, ""), MOST_NAME_CHARACTERS);
  const author = { name: plain(name) || user.name, email: plain(email) || user.email };
  const date = seconds === undefined ? undefined : `@${seconds} ${zone}`;
  return { author, date, message: cleanText(text.slice(end + 2)) || "Change" };
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > 4096) throw new VivError("unsupported", "What the sandbox's git says can't be read.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
