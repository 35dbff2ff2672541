/** Checks that can't run at all, found before an agent spends time and money on a change that nothing could judge. */
import { isAbsolute, join } from "node:path";
import { isUnknown } from "../../base/policy/shell/script.ts";
import { parseShell } from "../../base/policy/shell/shell.ts";
import { VivError } from "../../base/schema/errors.ts";
import { isProgram } from "../agents/programs.ts";

/** What a shell does itself. */
const BUILT_IN = new Set(
  `. : [ ! { alias bg break builtin case cd command continue declare dirs do echo eval exec exit export false fg for function getopts
  hash help if jobs kill let local popd printf pushd pwd read readonly return select set shift shopt source test time times trap true
  type typeset ulimit umask unalias unset until wait while`.split(/\s+/),
);

/**
 * Refuses a line that begins with a program which is not on the caller's PATH. A program named by its path, and all that follows the
 * first command, may be what the task is to make.
 */
export function requireRunnable(checks: readonly string[], path: string | undefined): void {
  const folders = (path ?? "").split(":").filter((folder) => isAbsolute(folder));
  if (folders.length === 0) return;
  for (const line of checks) {
    const name = programOf(line);
    if (name === undefined || folders.some((folder) => isProgram(join(folder, name)))) continue;
    throw new VivError("invalid_input", `The check \`${line}\` can't run: there is no program ${name} on your PATH.`, {
      remedy: "Install it, name it by its path, or give a line of --setup that installs it in the clone.",
    });
  }
}

function programOf(line: string): string | undefined {
  const word = parseShell(line).commands[0]?.words[0];
  if (word === undefined || isUnknown(word) || word.glob || word.tilde || !line.trimStart().startsWith(word.text)) return undefined;
  return word.text === "" || word.text.includes("/") || BUILT_IN.has(word.text) ? undefined : word.text;
}
