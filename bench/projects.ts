/** Projects to clone: git repositories of a given number of files, nested as real ones are. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const FILES_PER_FOLDER = 25;
const FOLDERS_PER_PART = 20;

/** Path of a file by its number. */
export function projectFile(index: number): string {
  const folder = Math.floor(index / FILES_PER_FOLDER);
  return `src/part-${Math.floor(folder / FOLDERS_PER_PART)}/module-${folder % FOLDERS_PER_PART}/file-${index % FILES_PER_FOLDER}.ts`;
}

/** Between 200 bytes and 4 KB, different in every file. */
function contentOf(index: number): string {
  const lines = 5 + ((index * 7) % 95);
  return Array.from({ length: lines }, (_, line) => `export const value_${index}_${line} = ${index + line};\n`).join("");
}

/** Through git's import, so that the repository has one pack like a cloned one, and no loose objects. */
export function makeProject(folder: string, files: number): void {
  mkdirSync(folder, { recursive: true });
  const stream = ["commit refs/heads/main\ncommitter bench <bench@example.com> 1700000000 +0000\ndata 5\nbegin\n"];
  for (let index = 0; index < files; index += 1) {
    const content = contentOf(index);
    stream.push(`M 100644 inline ${projectFile(index)}\ndata ${Buffer.byteLength(content)}\n${content}\n`);
  }
  const git = (args: readonly string[], input = ""): void => {
    execFileSync("git", args, { cwd: folder, input, stdio: ["pipe", "ignore", "ignore"] });
  };
  git(["init", "--quiet", "--initial-branch=main", "."]);
  git(["fast-import", "--quiet"], stream.join(""));
  git(["checkout", "--quiet", "--force", "main"]);
}

/** Appends to `count` files, spread over the project. */
export function changeFiles(folder: string, files: number, count: number): void {
  for (const path of changedFiles(files, count)) appendFileSync(join(folder, path), `// ${performance.now()}\n`);
}

/** Paths of `count` files, spread over the project. */
export function changedFiles(files: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => projectFile(Math.floor((index * files) / count)));
}

/** A shell line that appends to the same files wherever it runs; their names alone would be too long for a line. */
export function changingLine(files: number, count: number): string {
  const path = `printf "src/part-%d/module-%d/file-%d.ts\\n", int(folder/${FOLDERS_PER_PART}), folder%${FOLDERS_PER_PART}, file%${FILES_PER_FOLDER}`;
  const names = `awk '{ file=int($1*${files}/${count}); folder=int(file/${FILES_PER_FOLDER}); ${path} }'`;
  return `seq 0 ${count - 1} | ${names} | while read -r file; do echo "// changed" >>"$file"; done`;
}
