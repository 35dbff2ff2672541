/**
 * Files that lie in the checkout with CRLF and in the commit with LF, as git's settings for line ends have it. The sandbox saw
 * the checkout's; the commit goes on with its own, or every line would count as edited. Other files stay byte for byte.
 */
import { type Contents, withContents } from "../../machine/merge/contents.ts";
import type { StoredFile } from "../../machine/merge/merge.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import { type LocatedChange, storeEach } from "./located-changes.ts";

const MOST_BYTES = 16 * 1024 ** 2;
const LINK = "120000";

/** The same changes, where that is so with the committed file's line ends. */
export async function withCommittedLineEnds(
  store: GitStore,
  contents: string,
  edited: readonly LocatedChange[],
  files: ReadonlyMap<string, StoredFile>,
): Promise<LocatedChange[]> {
  const ids = await withContents(contents, (held) => storeEach(store, turnedIn(edited, held), (id) => toLf(held.read(id))));
  return Promise.all(edited.map((change) => turn(store, change, ids, files)));
}

/** Contents of both sides of files that had CRLF throughout. */
function turnedIn(edited: readonly LocatedChange[], contents: Contents): string[] {
  const turned = edited.flatMap(({ sides }) => {
    const both = [sides.old, sides.new].filter((side) => side !== null);
    const stays = sides.old === null || both.some(({ mode }) => mode === LINK) || !hasOnlyCrlf(contents, sides.old.id);
    return stays ? [] : both.map(({ id }) => id);
  });
  return [...new Set(turned)];
}

async function turn(
  store: GitStore,
  change: LocatedChange,
  ids: ReadonlyMap<string, string>,
  files: ReadonlyMap<string, StoredFile>,
): Promise<LocatedChange> {
  const { path, from, to, sides } = change;
  const committed = files.get(path.toString("latin1"));
  const old = ids.get(sides.old?.id ?? "");
  if (committed === undefined || committed.mode === LINK || from === null || old === undefined) return change;
  if (old !== committed.id && (await store.git(["cat-file", "blob", committed.id])).stdout.includes("\r\n")) return change;
  return { path, sides, from: { ...from, id: old }, to: to === null ? null : { ...to, id: ids.get(sides.new?.id ?? "") ?? to.id } };
}

function hasOnlyCrlf(contents: Contents, id: string): boolean {
  if (contents.sizeOf(id) > MOST_BYTES) return false;
  const text = contents.read(id).toString("latin1");
  return text.includes("\r\n") && !/(^|[^\r])\n|\0/.test(text);
}

/** Content that is no text any more stays as it is, as git leaves it. */
function toLf(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1");
  return text.includes("\0") ? bytes : Buffer.from(text.replaceAll("\r\n", "\n"), "latin1");
}
