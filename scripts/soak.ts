/**
 * The long versions of the tests that ask `test/support/soak.ts` how often to try. Arguments are parts of file names and
 * narrow the run: `npm run soak -- promotion`. The last line is that of `npm test`: `N passed, N failed, N skipped`.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const wanted = process.argv.slice(2);
const files = globSync("test/**/*.test.ts", { cwd: root })
  .filter((file) => readFileSync(join(root, file), "utf8").includes("support/soak.ts"))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .toSorted();

if (files.length === 0) {
  console.log(`No long test has a name with ${wanted.join(" or ")} in it.\n\n0 passed, 1 failed, 0 skipped`);
  process.exitCode = 1;
} else {
  // Long tests load the machine, and measure what they leave on it: one file at a time.
  const args = [join(root, "scripts", "test.ts"), ...files, "--no-file-parallelism"];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env: { ...process.env, VIV_SOAK: "1" } });
  process.exitCode = status ?? 1;
}
