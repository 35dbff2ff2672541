/** What is checked without running the program: types, lint, format, dead code. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { ONE_CHECKER, RARE_COLLECTION } from "./compiler.ts";

const root = join(import.meta.dirname, "..");

const CHECKS = {
  types: ["tsc", "--noEmit", ONE_CHECKER],
  "types of the dashboard": ["tsc", "--noEmit", ONE_CHECKER, "-p", "web"],
  lint: ["oxlint", "--deny-warnings"],
  format: ["oxfmt", "--check"],
  "dead code": ["knip", "--no-progress"],
  "dead code of the dashboard": ["knip", "--no-progress", "--directory", "web"],
} as const satisfies Record<string, readonly [string, ...string[]]>;

interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  readonly output: string;
}

/** Runs every check, all at once. */
export async function runChecks(): Promise<CheckResult[]> {
  return Promise.all(Object.entries(CHECKS).map(([name, [program, ...args]]) => runCheck(name, program, args)));
}

function runCheck(name: string, program: string, args: readonly string[]): Promise<CheckResult> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...RARE_COLLECTION };
    const child = spawn(join(root, "node_modules", ".bin", program), args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    const parts: Buffer[] = [];
    child.stdout.on("data", (part: Buffer) => parts.push(part));
    child.stderr.on("data", (part: Buffer) => parts.push(part));
    child.on("error", reject);
    child.on("close", (code) => resolve({ name, ok: code === 0, output: Buffer.concat(parts).toString() }));
  });
}

/** Prints the results for people; returns how many failed. */
export function reportChecks(results: readonly CheckResult[]): number {
  for (const { name, ok, output } of results) {
    console.log(`${ok ? "ok     " : "Failed:"} ${name}`);
    if (!ok) console.log(output.trimEnd());
  }
  return results.filter(({ ok }) => !ok).length;
}
