/** Work on files inside against the same work outside: git and the compiler over a project of real size. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../src/base/schema/shell-words.ts";
import { compare, pairCount, timed } from "./measure.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Copies of this repository's own sources in the project: git looks at all of them, the compiler at the first. */
const COPIES = 5;
/** The compiler says what it found by its exit code, which is the same on both sides and beside the point. */
const LINE = `git status --porcelain >/dev/null && { node_modules/.bin/tsc --noEmit -p . >/dev/null; true; }`;

export const ioGroup: Group = {
  keys: ["io_ratio"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      const project = join(server.place, "typescript");
      const { files, packages } = makeTypescriptProject(project);
      progress(`io_ratio: ${files} source files, ${packages} packages`);
      const { id: sandbox } = await server.create(project);
      const spawner = new Spawner();
      // Both sides find the Node that runs the benchmark.
      const line = `PATH=${shellWord(join(process.execPath, ".."))}:$PATH; ${LINE}`;
      try {
        requireWork(project, line, files / COPIES);
        await requireSame(server, sandbox, project, line);
        const measured = await compare({
          pairs: pairCount(quick),
          warmUp: 2,
          sides: [
            ["inside", () => timed(() => server.sh(sandbox, line))],
            ["outside", () => spawner.run(["/bin/sh", "-c", line], { cwd: project })],
          ],
        });
        return { io_ratio: { ...measured, more: { files, packages } } };
      } finally {
        await spawner.close();
      }
    });
  },
};

/** Sources under version control, packages ignored by it, as in the projects people have. */
function makeTypescriptProject(project: string): { files: number; packages: number } {
  const sources = ["src", "test", "scripts"].filter((name) => readdirSync(ROOT).includes(name));
  for (let copy = 0; copy < COPIES; copy += 1) {
    for (const name of sources) cpSync(join(ROOT, name), join(project, `package-${copy}`, name), { recursive: true });
  }
  const modules = join(project, "node_modules");
  mkdirSync(modules);
  // The pinned Node is one large file that no compiler reads.
  const packages = readdirSync(join(ROOT, "node_modules")).filter(
    (name) => !/^(vivarium|\.cache|\.vite.*|\.package-lock\.json)$/.test(name),
  );
  for (const name of packages) cpSync(join(ROOT, "node_modules", name), join(modules, name), { recursive: true, verbatimSymlinks: true });
  cpSync(join(ROOT, "tsconfig.json"), join(project, "base.json"));
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ extends: "./base.json", include: ["package-0/**/*"] }));
  writeFileSync(join(project, ".gitignore"), "node_modules\n");
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=bench", "-c", "user.email=bench@example.com", ...args], {
      cwd: project,
      encoding: "utf8",
      maxBuffer: 1024 ** 3,
    });
  git("init", "--quiet", ".");
  git("add", ".");
  git("commit", "--quiet", "-m", "sources");
  git("gc", "--quiet");
  return { files: git("ls-files", "*.ts").trim().split("\n").length, packages: packages.length };
}

/** A compiler that ends at once, over a wrong setting, would make a fine figure. */
function requireWork(project: string, line: string, files: number): void {
  const listing = line.replace("--noEmit", "--listFilesOnly").replaceAll(">/dev/null", "");
  const read = execFileSync("/bin/sh", ["-c", listing], { cwd: project, encoding: "utf8", maxBuffer: 1024 ** 3 }).split("\n").length;
  if (read < files) throw new Error(`tsc reads ${read} files instead of ${files}`);
}

/** What both sides find must be equal, or they did not do the same work. */
async function requireSame(server: BenchServer, sandbox: string, project: string, line: string): Promise<void> {
  const shown = `${line.replaceAll(">/dev/null", "")} | sort | cksum`;
  const inside = await server.sh(sandbox, shown);
  const outside = execFileSync("/bin/sh", ["-c", shown], { cwd: project, encoding: "utf8" });
  if (inside !== outside) throw new Error(`git status and tsc find something else inside: ${inside.trim()} against ${outside.trim()}`);
}
