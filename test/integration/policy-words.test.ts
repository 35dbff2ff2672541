/** Words as real shells take them apart are words as the parser does. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isUnknown } from "../../src/base/policy/shell/script.ts";
import { parseShell } from "../../src/base/policy/shell/shell.ts";
import { Randomness } from "../support/randomness.ts";

const SCRIPTS = 3_000;
const AT_ONCE = 250;
/** Nothing here runs anything: quotes, blanks, escapes and letters alone. */
const PIECES = [
  "a",
  "b",
  "c d",
  " ",
  "  ",
  "\t",
  "'",
  '"',
  "\\",
  "\\\\",
  "\\\n",
  "=",
  "-",
  "#",
  " #",
  "''",
  '""',
  "\\'",
  '\\"',
  "\\ ",
  "x=1",
  "{",
  "}",
  "!",
  "%",
  "@",
  ",",
  "é",
];
const BASH_PIECES = [
  "$'",
  "\\n",
  "\\t",
  "\\x41",
  "\\101",
  "\\542",
  "\\0",
  "\\x00",
  "\\x{142}",
  "\\x",
  "\\q",
  "\\?",
  "\\cA",
  "\\u0042",
  "\\e",
  '$"',
];
/** Prints how many arguments there are and each of them; what is no command prints nothing. */
const RUNNER = `args() { printf '%s\\0' "$#" "$@"; }; for script; do (eval "$script") 2>/dev/null; printf '\\001\\0'; done`;

let folder = "";
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "viv-policy-words-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Arguments of each script as the shell sees them; undefined where it does not run it. */
function seenBy(shell: string, scripts: readonly string[]): (string[] | undefined)[] {
  const { stdout } = spawnSync(shell, ["-c", RUNNER, shell, ...scripts], {
    cwd: folder,
    env: { PATH: folder, LC_ALL: "C.UTF-8" },
    timeout: 20_000,
  });
  return stdout
    .toString()
    .split("\u0001\0")
    .slice(0, scripts.length)
    .map((text) => {
      const [count, ...words] = text.split("\0");
      return count === "" || count === undefined ? undefined : words.slice(0, Number(count));
    });
}

/** The same as the parser sees them; undefined where it says that it does not know. */
function parsed(script: string): string[] | undefined {
  const { commands, problems } = parseShell(script);
  const [command, ...more] = commands;
  if (problems.length > 0 || command === undefined || more.length > 0) return undefined;
  if (command.assignments.length > 0 || command.redirects.length > 0 || command.words.some(isUnknown)) return undefined;
  const [name, ...words] = command.words.map(({ text }) => text);
  return name === "args" ? words : undefined;
}

describe.each([
  ["/bin/dash", PIECES, 5],
  ["/bin/bash", [...PIECES, ...BASH_PIECES], 6],
] as const)("%s", (shell, pieces, seed) => {
  test("AP-15: takes the same words out of a command as the parser", () => {
    const random = new Randomness(seed);
    const wrong: { script: string; shell: string[]; parser: string[] }[] = [];
    let alike = 0;
    for (let done = 0; done < SCRIPTS; done += AT_ONCE) {
      const scripts = Array.from({ length: AT_ONCE }, () => {
        const length = 1 + random.below(9);
        return `args ${Array.from({ length }, () => random.of(pieces)).join("")}`;
      });
      for (const [index, words] of seenBy(shell, scripts).entries()) {
        const script = scripts[index] ?? "";
        const mine = parsed(script);
        if (words === undefined || mine === undefined) continue;
        if (JSON.stringify(words) === JSON.stringify(mine)) alike += 1;
        else wrong.push({ script, shell: words, parser: mine });
      }
    }
    expect(wrong.slice(0, 10)).toEqual([]);
    expect(alike).toBeGreaterThan(SCRIPTS / 10);
  }, 60_000);

  test("AP-15: what it runs as one command, the parser does not call none", () => {
    const random = new Randomness(seed + 1);
    const scripts = Array.from(
      { length: AT_ONCE },
      () => `args ${Array.from({ length: 1 + random.below(7) }, () => random.of(pieces)).join("")}`,
    );
    const missed = seenBy(shell, scripts).flatMap((words, index) => {
      const { commands, problems } = parseShell(scripts[index] ?? "");
      return words !== undefined && problems.length === 0 && commands.length === 0 ? [scripts[index]] : [];
    });
    expect(missed).toEqual([]);
  });

  test("AP-15: as a control, a parser that only splits at blanks sees other words", () => {
    const [words] = seenBy(shell, ["args 'a b' c\\ d"]);
    expect(words).toEqual(["a b", "c d"]);
    expect("args 'a b' c\\ d".split(" ").slice(1)).not.toEqual(words);
    expect(parsed("args 'a b' c\\ d")).toEqual(words);
  });
});
