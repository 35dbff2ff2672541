/** Programs that attack from inside, and the same on the machine itself as the proof that they would succeed. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CHECKOUT } from "./compiled.ts";
import type { TestServer } from "./server.ts";

const MADE = join(CHECKOUT, ".cache/attacks");

/** Puts a program of this folder into a project, so that it exists inside. */
export function compile(folder: string, ...names: readonly string[]): void {
  for (const name of names) copyFileSync(compiled(name), join(folder, name));
}

/** Compiled once, for all files of tests that use it, and again when its source changes. */
function compiled(name: string): string {
  const source = fileURLToPath(new URL(`${name}.c`, import.meta.url));
  const program = join(MADE, `${name}-${createHash("sha256").update(readFileSync(source)).digest("hex").slice(0, 16)}`);
  if (existsSync(program)) return program;
  mkdirSync(MADE, { recursive: true });
  const work = mkdtempSync(join(MADE, "work-"));
  execFileSync("cc", ["-o", join(work, name), source]);
  // Another file may make the same at the same moment: each is whole from the start.
  renameSync(join(work, name), program);
  rmSync(work, { recursive: true });
  return program;
}

export type Outcomes = Record<string, string>;

/** `name result`, a line each. */
export function outcomes(text: string): Outcomes {
  return Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line): [string, string] => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]),
  );
}

/** What `program` gets done inside, as root inside. */
export async function attackInside(server: TestServer, sandbox: string, program: string, ...names: readonly string[]): Promise<Outcomes> {
  const result = await server.client.call("runCommand", { sandbox, command: [join(server.project, program), ...names], user: "root" });
  return outcomes(result.stdout);
}

/** The same on the machine, as root, in namespaces of its own with an empty /tmp: what it does there goes with it. */
export function attackHost(program: string, ...names: readonly string[]): Outcomes {
  // Each in a process of its own: the first namespace an attack gets would hold back the next attack.
  const script = 'exec 3<"$1"; shift; mount -t tmpfs none /tmp; cd /tmp; for name in "$@"; do /proc/self/fd/3 "$name"; done';
  return outcomes(
    execFileSync("unshare", ["-m", "-n", "-i", "-p", "-f", "--mount-proc", "sh", "-c", script, "sh", program, ...names], {
      encoding: "utf8",
    }),
  );
}

/**
 * What a shell line, as root, prints where these files of /proc and /sys are ordinary ones that anyone can write: what an
 * attack on the kernel's own would do, without a kernel that gets hurt.
 */
export function withFiles(paths: readonly string[], content: string, line: string): string {
  const script = `set -e; mount -t tmpfs none /proc; mount -t tmpfs none /sys
    content=$1; line=$2; shift 2
    for path in "$@"; do mkdir -p "$(dirname "$path")"; echo "$content" > "$path"; done
    set +e; eval "$line"`;
  return execFileSync("unshare", ["-m", "sh", "-c", script, "sh", content, line, ...paths], { encoding: "utf8" });
}

export function all(names: readonly string[], result: string): Outcomes {
  return Object.fromEntries(names.map((name) => [name, result]));
}
