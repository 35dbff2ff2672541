/** Writes a merged change into a live sandbox, through process 1 alone. */
import type { FileOperations, FileStep } from "../../machine/drivers/drivers.ts";
import { Contents } from "../../machine/merge/contents.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";

/** A folder, where a change names one: git itself knows none. */
export const FOLDER = "040000";
const LINK = "120000";
const EXECUTABLE = "100755";

/**
 * Brings `changes` into the sandbox's project as the user given. `contents` is a folder of ours with what the changes bring.
 * Folders that lose their last file go, as with git. What was done stays when a step fails.
 * What changed inside after the time `since` is left alone, and its paths are returned.
 */
export async function applyInside(
  files: FileOperations,
  project: string,
  user: string,
  changes: readonly MergedChange[],
  contents: string,
  since?: number,
): Promise<string[]> {
  return changes.length === 0 ? [] : files.apply(project, user, stepsOf(changes, contents), since);
}

/** What goes makes room first; other folders are looked at last, when it is known what came into them. */
async function* stepsOf(changes: readonly MergedChange[], contents: string): AsyncGenerator<FileStep, void, void> {
  const went = changes.filter((change) => change.new === null);
  const gone = went.filter(({ old }) => old?.mode !== FOLDER).map(({ path }) => decodePath(path));
  const emptied = deepestFirst([
    ...went.filter(({ old }) => old?.mode === FOLDER).map(({ path }) => decodePath(path)),
    ...foldersAbove(gone),
  ]);
  const written = new Set(changes.filter((change) => change.new !== null).map(({ path }) => decodePath(path)));
  const inTheWay = emptied.filter((folder) => written.has(folder) || foldersAbove([folder]).some((above) => written.has(above)));
  for (const path of gone) yield { do: "remove", path };
  for (const path of inTheWay) yield { do: "prune", path };
  const held = new Contents(contents);
  try {
    for (const { path, new: now } of changes) if (now !== null) yield stepTo(decodePath(path), now, held);
  } finally {
    held.close();
  }
  for (const path of emptied) yield { do: "prune", path };
}

function stepTo(path: string, { mode, id }: StoredFile, contents: Contents): FileStep {
  if (mode === FOLDER) return { do: "folder", path };
  if (mode === LINK) return { do: "link", path, target: decodePath(contents.read(id)) };
  return { do: "file", path, executable: mode === EXECUTABLE, body: bodyOf(contents, id) };
}

async function* bodyOf(contents: Contents, id: string): AsyncGenerator<Buffer, void, void> {
  yield* contents.parts(id);
}

function foldersAbove(paths: readonly string[]): string[] {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) folders.add(path.slice(0, end));
  }
  return [...folders];
}

function deepestFirst(paths: readonly string[]): string[] {
  return [...new Set(paths)].toSorted((one, other) => other.split("/").length - one.split("/").length);
}
