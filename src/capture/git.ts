/** Host git on the real project, read-only: no hook, no monitor, no prompt, no lock, and no more rights than the project's owner. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { run, type RunResult, TOOL_PATH } from "../host/run.ts";
import { readPeople } from "./people.ts";

const TIMEOUT_MS = 30_000;

export async function git(folder: string, args: readonly string[]): Promise<RunResult> {
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
    },
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: 64 * 1024 ** 2,
    ...(asRoot ? { uid: owner.uid, gid: owner.gid } : {}),
  });
}

/** What the owner ignores in every repository is not worth capturing either. */
export function ignoreFileOf(uid: number): string {
  const home = readPeople().find((person) => person.uid === uid)?.home;
  const file = home === undefined ? "" : join(home, ".config/git/ignore");
  return file !== "" && existsSync(file) ? file : "/dev/null";
}
