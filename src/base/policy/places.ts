/** Where a path of a command leads, as far as its text says. */
import { UNKNOWN } from "./pattern.ts";
import { isUnknown, type Word } from "./shell/script.ts";

export interface Place {
  /** Inside the project, outside, known only when it runs, or nothing that is a file. */
  readonly kind: "inside" | "outside" | "unknown" | "nothing";
  /** The path as rules may name it: relative to the project, absolute, from ~. */
  readonly texts: readonly string[];
  /** The same with unknown parts where the shell expands a pattern. */
  readonly loose?: readonly string[];
}

const NO_FILE = /^\/dev\/(null|stdin|stdout|stderr|tty|zero|random|urandom|full|fd\/\d+)$/;
const GLOB = /[*?]+|\[[^\]/]*\]?/g;
/** Stands for the project's folder where the caller does not name it. */
const SOMEWHERE = "/\u0002project";

/** All places it may be: a relative path is one from every folder that was entered before. */
export function placesOf(path: Word, from: readonly Word[], project: string | undefined): Place[] {
  const root = project ?? SOMEWHERE;
  const first = absolute(path, root);
  if (first === undefined) return [{ kind: "unknown", texts: [] }];
  const others = isRelative(path) ? folders(from, root).map((folder) => (folder === undefined ? undefined : absolute(path, folder))) : [];
  return [first, ...others].flatMap((each) =>
    each === undefined ? [{ kind: "unknown" as const, texts: [] }] : places(each, root, path.glob),
  );
}

function folders(from: readonly Word[], root: string): (string | undefined)[] {
  let current: string | undefined = root;
  return from.map((word) => {
    current = current === undefined && isRelative(word) ? undefined : absolute(word, current ?? root);
    return current;
  });
}

function isRelative({ text, tilde }: Word): boolean {
  return !text.startsWith("/") && !tilde && !/^\$\{?HOME\}?(\/|$)/.test(text);
}

function absolute(word: Word, folder: string): string | undefined {
  const home = /^\$(?:HOME|\{HOME\})(?=\/|$)/.exec(word.text)?.[0];
  const text = home === undefined ? word.text : `~${word.text.slice(home.length)}`;
  const unknown = home === undefined ? isUnknown(word) : text.includes("$") || text.includes("`");
  if (unknown || text === "-" || text.includes("\0")) return undefined;
  if (home !== undefined || word.tilde) return /^~(\/|$)/.test(text) ? normal(text) : undefined;
  return normal(text.startsWith("/") ? text : `${folder}/${text}`);
}

/** Without `.`, `..` and double slashes; `..` does not leave the root. */
function normal(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      if (parts.at(-1) === "~") return normal(`/home/${path}`);
      parts.pop();
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts[0] === "~" ? parts.join("/") : `/${parts.join("/")}`;
}

function places(path: string, root: string, glob: boolean): Place[] {
  // `folder/*` is all of the folder.
  const whole = glob && /\/(\*|\.\*|\*\*|\?\*)$/.test(path) ? places(path.slice(0, path.lastIndexOf("/")) || "/", root, false) : [];
  const found = place(path, root);
  return [glob ? { ...found, loose: found.texts.map((text) => text.replace(GLOB, UNKNOWN)) } : found, ...whole];
}

function place(path: string, root: string): Place {
  if (NO_FILE.test(path)) return { kind: "nothing", texts: [] };
  if (path === root) return { kind: "inside", texts: [".", path] };
  if (path.startsWith(`${root === "/" ? "" : root}/`))
    return { kind: "inside", texts: [path.slice(root === "/" ? 1 : root.length + 1), path] };
  return { kind: "outside", texts: [path] };
}
