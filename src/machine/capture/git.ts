/** Host git on the real project, read-only: no hook, no monitor, no prompt, no lock, and no more rights than the project's owner. */
import { statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { run, type RunResult, TOOL_PATH } from "../../base/host/run.ts";
import { specialForGit } from "./git-special.ts";
import { readPeople } from "./people.ts";

const TIMEOUT_MS = 30_000;
/** It reads files and asks nothing: asleep for so long, it waits for a pipe that stands where it looks for text. */
const ASLEEP_MS = 2_000;

/** A code other than 0, as where git itself says no, if the repository has no text to read where git looks for it. */
export async function git(folder: string, args: readonly string[]): Promise<RunResult> {
  const special = await specialForGit(folder);
  if (special !== undefined) return { code: null, stdout: Buffer.alloc(0), stderr: `${special} is no regular file` };
  const owner = await stat(folder);
  const settings = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "safe.directory=*",
    "core.askPass=true",
    "core.pager=cat",
    `core.excludesFile=${ignoreFileOf(owner.uid)}`,
  ];
  const asRoot = process.getuid?.() === 0 && owner.uid !== 0;
  return run("git", ["-C", folder, ...settings.flatMap((setting) => ["-c", setting]), ...args], {
    env: {
      PATH: TOOL_PATH,
      LC_ALL: "C",
      HOME: "/nonexistent",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_TERMINAL_PROMPT: "0",
      GIT_NO_LAZY_FETCH: "1",
      // Older gits fetch what a partial clone lacks all the same, by a program that the repository's settings name.
      GIT_ALLOW_PROTOCOL: "none",
    },
    timeoutMs: TIMEOUT_MS,
    asleepMs: ASLEEP_MS,
    maxOutputBytes: 64 * 1024 ** 2,
    ...(asRoot ? { uid: owner.uid, gid: owner.gid } : {}),
  });
}

/** What the owner ignores in every repository is not worth capturing either. */
export function ignoreFileOf(uid: number): string {
  const home = readPeople().find((person) => person.uid === uid)?.home;
  const file = home === undefined ? "" : join(home, ".config/git/ignore");
  return file !== "" && isFile(file) ? file : "/dev/null";
}

/** A file in a folder that the server may not enter counts as absent. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}
