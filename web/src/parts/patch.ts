/** A patch as git writes it, taken apart by file. */

export interface FilePatch {
  readonly path: string;
  readonly from: string | null;
  readonly status: "added" | "changed" | "deleted" | "renamed";
  /** What is to be said in words: modes, links, binary content. */
  readonly notes: readonly string[];
  readonly added: number;
  readonly removed: number;
  readonly binary: boolean;
  /** The file's part of the patch, from `diff --git` on. */
  readonly text: string;
}

const MODES: Readonly<Record<string, string>> = {
  "100644": "a plain file",
  "100755": "executable",
  "120000": "a symbolic link",
  "160000": "a submodule",
};

function modeWords(mode: string | undefined): string {
  return mode === undefined ? "unknown" : (MODES[mode] ?? mode);
}

/** git quotes names with odd bytes. */
function unquote(name: string): string {
  return name.startsWith('"')
    ? name.slice(1, -1).replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) => (code.length === 3 ? `\\${code}` : code))
    : name;
}

function nameBehind(lines: readonly string[], prefix: string, folder: string): string | undefined {
  const line = lines.find((each) => each.startsWith(prefix))?.slice(prefix.length);
  if (line === undefined || line === "/dev/null") return undefined;
  const name = unquote(line.replace(/\t$/, ""));
  return name.startsWith(folder) ? name.slice(folder.length) : name;
}

function filePatch(text: string): FilePatch {
  const at = text.indexOf("\n@@");
  const head = (at < 0 ? text : text.slice(0, at)).split("\n");
  const body = at < 0 ? [] : text.slice(at + 1).split("\n");
  const value = (prefix: string): string | undefined => head.find((line) => line.startsWith(prefix))?.slice(prefix.length);
  const [, first = ""] = /^diff --git (?:"?a\/)(.*?)"? (?:"?b\/).*$/.exec(head[0] ?? "") ?? [];
  const newName = nameBehind(head, "+++ ", "b/") ?? value("rename to ");
  const oldName = nameBehind(head, "--- ", "a/") ?? value("rename from ");
  const newMode = value("new mode ") ?? value("new file mode ");
  const oldMode = value("old mode ");
  const binary = head.some((line) => line.startsWith("Binary files") || line.startsWith("GIT binary patch"));
  const isNew = value("new file mode ") !== undefined;
  const isGone = value("deleted file mode ") !== undefined;
  const renamed = value("rename to ") !== undefined;
  return {
    path: newName ?? oldName ?? first,
    from: renamed ? (value("rename from ") ?? null) : null,
    status: isNew ? "added" : isGone ? "deleted" : renamed ? "renamed" : "changed",
    notes: [
      ...(oldMode === undefined ? [] : [`It was ${modeWords(oldMode)} and is ${modeWords(newMode)} now.`]),
      ...(isNew && newMode !== undefined && newMode !== "100644" ? [`It is ${modeWords(newMode)}.`] : []),
      ...(renamed ? [`It was ${value("rename from ") ?? ""}.`] : []),
      ...(binary ? ["Its content is binary."] : []),
    ],
    added: body.filter((line) => line.startsWith("+")).length,
    removed: body.filter((line) => line.startsWith("-")).length,
    binary,
    text,
  };
}

export function filesOf(patch: string): FilePatch[] {
  const starts = [...patch.matchAll(/^diff --git /gm)].map(({ index }) => index);
  return starts.map((start, index) => filePatch(patch.slice(start, starts[index + 1] ?? patch.length).replace(/\n$/, "")));
}

/** Short, and different for different text: a mark on a file goes when its content changes. */
export async function digest(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(hash.slice(0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
