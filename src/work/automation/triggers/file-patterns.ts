/** Which paths of a project an automation waits for. Pure. */
import { compile, matches, type Pattern } from "../../../base/policy/pattern.ts";

/** Folders whose files change with the work of others, unless a pattern names them. */
const PASSED_OVER = [".git", "node_modules"];

export class FilePatterns {
  readonly #patterns: readonly Pattern[];
  readonly #sources: readonly string[];

  constructor(paths: readonly string[]) {
    this.#sources = paths.map((path) => path.replace(/^(\.\/)+/, "").replace(/\/+$/, ""));
    this.#patterns = this.#sources.map((path) => compile(path.replaceAll("**", "*").replaceAll("*/*", "*")));
  }

  matches(path: string): boolean {
    return this.#patterns.some((pattern, index) => matches(pattern, path) || path.startsWith(`${this.#sources[index] ?? ""}/`));
  }

  /** Whether something below a folder may match; "" is the project itself. */
  mayMatchBelow(folder: string): boolean {
    const name = folder.slice(folder.lastIndexOf("/") + 1);
    return this.#sources.some((source) => {
      if (PASSED_OVER.includes(name) && !source.split("/").includes(name)) return false;
      if (folder === "") return true;
      const literal = source.split("*", 1)[0] ?? "";
      const below = `${folder}/`;
      return literal.startsWith(below) || below.startsWith(literal) || below.startsWith(`${source}/`);
    });
  }
}
