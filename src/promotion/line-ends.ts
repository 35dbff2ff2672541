/**
 * Files that lie in the checkout with CRLF and in the commit with LF, as git's settings for line ends have it. The sandbox saw
 * the checkout's; the commit goes on with its own, or every line would count as edited. Other files stay byte for byte.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StoredFile } from "../merge/merge.ts";
import type { GitStore } from "../merge/store.ts";
import { bringIn, type Located } from "./located.ts";

const MOST_BYTES = 16 * 1024 ** 2;
const LINK = "120000";

/** The same changes, where that is so with the committed file's line ends. */
export async function withCommittedLineEnds(
  store: GitStore,
  contents: string,
  edited: readonly Located[],
  files: ReadonlyMap<string, StoredFile>,
): Promise<Located[]> {
  const folder = await store.place("line-ends");
  const turned = new Set<string>();
  for (const { sides } of edited) {
    const both = [sides.old, sides.new].filter((side) => side !== null);
    if (sides.old === null || both.some(({ mode }) => mode === LINK) || !(await hasOnlyCrlf(join(contents, sides.old.id)))) continue;
    for (const { id } of both) {
      await writeFile(join(folder, id), toLf(await readFile(join(contents, id))));
      turned.add(id);
    }
  }
  const ids = await bringIn(store, [...turned], folder);
  return Promise.all(edited.map((change) => turn(store, change, ids, files)));
}

async function turn(
  store: GitStore,
  change: Located,
  ids: ReadonlyMap<string, string>,
  files: ReadonlyMap<string, StoredFile>,
): Promise<Located> {
  const { path, from, to, sides } = change;
  const committed = files.get(path.toString("latin1"));
  const old = ids.get(sides.old?.id ?? "");
  if (committed === undefined || committed.mode === LINK || from === null || old === undefined) return change;
  if (old !== committed.id && (await store.git(["cat-file", "blob", committed.id])).stdout.includes("\r\n")) return change;
  return { path, sides, from: { ...from, id: old }, to: to === null ? null : { ...to, id: ids.get(sides.new?.id ?? "") ?? to.id } };
}

async function hasOnlyCrlf(file: string): Promise<boolean> {
  const bytes = await readFile(file);
  const text = bytes.toString("latin1");
  return bytes.length <= MOST_BYTES && text.includes("\r\n") && !/(^|[^\r])\n|\0/.test(text);
}

/** What is no text any more stays as it is, as git leaves it. */
function toLf(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1");
  return text.includes("\0") ? bytes : Buffer.from(text.replaceAll("\r\n", "\n"), "latin1");
}
