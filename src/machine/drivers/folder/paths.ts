/**
 * Paths of an unwalled sandbox as places in its copy. Every component is looked at, and a link that leads out of the
 * copy is refused. Who could change a component between the look and the use has the server's own rights anyway: this
 * keeps a mistake from reaching reality, it is no wall.
 */
import { lstat, readlink } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";
import { isWithin } from "../../capture/project.ts";

const MOST_LINKS = 40;

export interface Resolving {
  /** Follow a link in the last place too. */
  readonly follow: boolean;
  /** Folders on the way need not exist. */
  readonly missing?: boolean;
}

export class CopyPaths {
  /** The copy's folder, without links. */
  readonly root: string;
  readonly #project: string;

  constructor(root: string, project: string) {
    this.root = root;
    this.#project = project;
  }

  /** Whether a path names something in the project, by its place in reality or in the copy. */
  holds(path: string): boolean {
    return !isAbsolute(path) || isWithin(path, this.#project) || isWithin(path, this.root);
  }

  /** The place in the copy of a path that is not looked at: for variables such as PATH. */
  mapped(path: string): string {
    return isAbsolute(path) && isWithin(path, this.#project) && !isWithin(path, this.root)
      ? join(this.root, relative(this.#project, path))
      : path;
  }

  /** The place in the copy, each component looked at. The last one need not exist. */
  async resolve(path: string, { follow, missing = false }: Resolving): Promise<string> {
    const left = this.#components(path);
    const done: string[] = [];
    for (let links = 0; left.length > 0;) {
      const name = left.shift() ?? "";
      if (name === "" || name === ".") continue;
      if (name === "..") {
        if (done.pop() === undefined) throw outside(path);
        continue;
      }
      const place = join(this.root, ...done, name);
      const last = left.every((rest) => rest === "" || rest === ".");
      const kind = await kindOf(place, path);
      if (kind === "link" && (!last || follow)) {
        if (++links > MOST_LINKS) throw new VivError("invalid_input", `${path}: too many links follow each other`);
        const target = await readlink(place);
        if (isAbsolute(target) && !isWithin(target, this.root)) throw outside(path);
        if (isAbsolute(target)) done.length = 0;
        left.unshift(...(isAbsolute(target) ? relative(this.root, target) : target).split("/"));
        continue;
      }
      if (kind === "none" && !last && (!missing || left.includes("..")))
        throw new VivError("file_not_found", `${path}: no such file or folder`);
      if (kind === "other" && !last) throw new VivError("invalid_input", `${path}: not a folder`);
      done.push(name);
    }
    return join(this.root, ...done);
  }

  #components(path: string): string[] {
    if (!isAbsolute(path)) return path.split("/");
    const base = [this.root, this.#project].find((folder) => isWithin(path, folder));
    if (base === undefined) throw outside(path);
    return path.slice(base.length).split("/");
  }
}

async function kindOf(place: string, path: string): Promise<"dir" | "link" | "other" | "none"> {
  try {
    const found = await lstat(place);
    if (found.isSymbolicLink()) return "link";
    return found.isDirectory() ? "dir" : "other";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "none";
    throw fileError(error, path);
  }
}

function outside(path: string): VivError {
  return new VivError("denied", `${path} lies or leads outside the copy of the project`, {
    remedy: "Name a path inside the project: an unwalled sandbox holds a copy of nothing else.",
  });
}

/** The system's error as one of ours. */
export function fileError(error: unknown, path: string): VivError {
  if (error instanceof VivError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const say = (kind: ConstructorParameters<typeof VivError>[0], text: string, remedy?: string): VivError =>
    new VivError(kind, `${path}: ${text}`, { cause: error, ...(remedy === undefined ? {} : { remedy }) });
  switch (code) {
    case "ENOENT":
      return say("file_not_found", "no such file or folder");
    case "EACCES":
    case "EPERM":
      return say("denied", "not permitted", "Change the file's mode with a command in the sandbox.");
    case "EEXIST":
      return say("exists", "is there already");
    case "ENOTDIR":
      return say("invalid_input", "not a folder");
    case "EISDIR":
      return say("invalid_input", "is a folder");
    case "ENOTEMPTY":
      return say("invalid_input", "the folder is not empty");
    case "ELOOP":
    case "ENAMETOOLONG":
    case "EINVAL":
      return say("invalid_input", "not a usable path");
    case "ENOSPC":
    case "EDQUOT":
      return say("disk_full", "there is no space left");
    default:
      return say("internal", message);
  }
}
