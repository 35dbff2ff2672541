/** The files that git knows or would add, read once: what tidy speaks about. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "..", "..");

export interface ProjectFile {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
}

const paths = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" })
  .split("\0")
  .filter((path) => path !== "" && existsSync(join(root, path)));

/** Project files whose path fits; a pattern that fits none is a mistake of the test. */
export function projectFiles(pattern: RegExp): ProjectFile[] {
  const fitting = paths.filter((path) => pattern.test(path) && !path.startsWith("test/fixtures/"));
  if (fitting.length === 0) throw new Error(`no file fits ${pattern}`);
  return fitting.map((path) => {
    const text = readFileSync(join(root, path), "utf8");
    return { path, text, lines: text.split("\n") };
  });
}

/** Every place where a pattern stands, as `path:line: text`. */
export function findLines(files: readonly ProjectFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
}
