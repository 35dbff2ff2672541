/** Our shell parser against one that others wrote: where both take a text for a script, they find the same commands in it. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { withoutJoins } from "../../src/base/policy/shell/scanner.ts";
import { parseShell } from "../../src/base/policy/shell/shell.ts";
import { Randomness } from "../support/randomness.ts";
import { AROUND, edited, PLAIN, WITHIN } from "../support/shell-mutations.ts";
import { difference, found, oracle } from "../support/shell-oracle.ts";
import { workMs } from "../support/work.ts";

const corpus = [
  ...new Set(
    readFileSync(new URL("../corpus/policy-commands.jsonl", import.meta.url), "utf8")
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { command: string }).command),
  ),
];

/** Where the parsers may differ: by what stands in the text, with the reason. Each was tried with bash. */
const KNOWN: readonly (readonly [reason: string, pattern: RegExp])[] = [
  ["bash joins letters to a process substitution before or behind them, as we do", /[<>]\([^]*\)[^\s;&|<>()]|=[<>]\(/],
  ["`time -- x` and `time -o x` are the program time to us, as they are to shells that have no such keyword", /time[ \t\\\n"']+-/],
  ["bash reads `\\x{72}` as a letter, as we do; other bytes than ASCII have no letter", /\\x[{89a-fA-F]/],
  ["bash gives a single quote no meaning in a `${` inside double quotes, as we do", /"[^"]*\$\{[^}]*'/],
  ["no shell expands this `${`, but commands in it are found by us", /\$\{(?:\w*[^\w}:=?+\-#%/^,@*![\]]|[-:])/],
  ["braces that close twice make a word less known to us than it is", /\{[^{}]*(?:,|\.\.)[^{}]*\}[^\s]*\}/],
  ["a name with `[` and no `=` is one word to bash, a program that is not there; we judge what is inside", /\w\[[^\]]*[\s;&|]/],
  ["`$((` with a `case` inside is read as commands, too", /\$\(\([^]*\bcase\b/],
  ["bash joins lines in names, numbers of redirections and after `$`, but not in `$'`, as we do", /\$[^]*\\\n|\d\\\n|\{\w*\\\n/],
  ["a coprocess whose name is no name is not run by bash", /coproc +\S*[^\w\s]/],
];

interface Comparison {
  /** Texts that both parsers take for a script. */
  both: number;
  readonly used: Set<string>;
  readonly wrong: unknown[];
}

function compare(texts: Iterable<string>): Comparison {
  const result: Comparison = { both: 0, used: new Set(), wrong: [] };
  for (const text of texts) {
    const script = parseShell(text);
    // The other parser joins lines in words alone.
    const theirs = oracle(/['`#]|<</.test(text) ? text : withoutJoins(text));
    if (script.problems.length > 0 || theirs === undefined) continue;
    result.both += 1;
    const differs = difference(found(script), theirs);
    if (differs === undefined) continue;
    const [reason] = KNOWN.find(([, pattern]) => pattern.test(text) || pattern.test(text.replaceAll("\\\n", ""))) ?? [];
    if (reason === undefined) result.wrong.push({ text, ...differs });
    else result.used.add(reason);
  }
  return result;
}

function* around(): Generator<string> {
  for (const command of corpus) for (const each of AROUND) yield each(command);
}

function* within(): Generator<string> {
  const random = new Randomness(7);
  for (const command of corpus.filter((each) => PLAIN.test(each))) for (const each of WITHIN) yield each(command, random);
}

function* byChance(count: number, seed: number): Generator<string> {
  const random = new Randomness(seed);
  for (let round = 0; round < count; round += 1) yield edited(random.of(corpus), random, () => random.of(corpus));
}

describe("two parsers", () => {
  test("POL-2: find the same commands, words, assignments and redirections, but for reasons that are known and each used", () => {
    const { both, used, wrong } = compare([...corpus, ...around(), ...within(), ...byChance(30_000, 7)]);
    expect(wrong).toEqual([]);
    expect(both).toBeGreaterThan(70_000);
    expect([...used].toSorted()).toEqual(KNOWN.map(([reason]) => reason).toSorted());
  }, 180_000);

  test("differ noticeably, as a control, where one of them has found something else", () => {
    const text = "A=1 sudo ls > out | cat <<E\nx\nE\nfor x in 1; do id; done";
    const ours = found(parseShell(text));
    const theirs = oracle(text);
    expect(theirs).toEqual(ours);
    const [first = "", ...others] = ours.commands;
    for (const damaged of [
      { ...ours, commands: others },
      { ...ours, commands: [first.replace("sudo", "ls"), ...others] },
      { ...ours, commands: [first.replace("out", "in"), ...others] },
      { ...ours, commands: [first.replace("A=1", "A=2"), ...others] },
      { ...ours, commands: [...ours.commands, first] },
      { ...ours, variables: [] },
    ])
      expect(difference(damaged, ours), JSON.stringify(damaged)).toBeDefined();
  });
});

describe("what bash runs and the parser did not see", () => {
  const names = (text: string): (string | undefined)[] => parseShell(text).commands.map(({ words }) => words[0]?.text);

  test("AP-15: letters after a list of values are a part of it, and the next word is the command", () => {
    for (const text of ["x=(a)ls sudo ls", "x+=(a b)cd sudo ls", "y=1 x=(a)'ls' sudo ls"]) {
      expect(names(text), text).toContain("sudo");
      expect(parseShell(text).problems, text).toHaveLength(1);
    }
    expect(parseShell("x=(a b) npm test; y=(c)>out").problems).toEqual([]);
  });

  test("AP-15: what stands after `coproc` is the command unless a keyword follows", () => {
    for (const text of ["coproc sudo {x", "coproc sudo iffy", "coproc sudo format /dev/sda"]) expect(names(text), text).toEqual(["sudo"]);
    expect(names("coproc N { id; }")).toEqual([undefined, "id"]);
  });

  test("AP-15: such letters are the command itself to other shells", () => {
    expect(names("a=()sudo ls")).toContain("sudo");
    expect(names("a=(1)ls; b=()sudo ls")).toContain("sudo");
  });

  test("AP-15: a bracket in quotes ends no subscript, and shells without subscripts read a word", () => {
    for (const text of ["a['b]='; sudo ls #'", 'a["]"]=1 sudo ls', "a[\\]]=1 sudo ls", 'a["x"]\\\n=1 sudo ls', "a[']=1 id #']=2; sudo ls"])
      expect(names(text), text).toContain("sudo");
    expect(parseShell(`a[1${" + 1".repeat(100)}]=1 sudo ls`).problems).toEqual(["a subscript is too long"]);
  });

  test("AP-15: joined lines are one, but in single quotes and comments", () => {
    for (const text of [
      'echo "$\\\n(sudo ls)"',
      "echo $\\\n(sudo ls)",
      "a\\\n=1 sudo ls",
      "a+\\\n=1 sudo ls",
      "a\\\nb=1 sudo ls",
      "# a comment\\\nsudo ls",
      "echo '\\\n' # a comment\\\nsudo ls",
      "cat <<'E'\na\\\nE\nsudo ls",
    ]) {
      expect(names(text), text).toContain("sudo");
      expect(parseShell(text).problems, text).toEqual([]);
    }
    for (const [text, name] of [
      ["LD_PRE\\\nLOAD=/x ls", "LD_PRELOAD"],
      ["PATH\\\n=/x ls", "PATH"],
      ["echo $((PA\\\nTH=1))", "PATH"],
      ["echo ${PA\\\nTH:\\\n=1}", "PATH"],
    ] as const)
      expect(
        parseShell(text).commands.flatMap(({ assignments }) => assignments.map((each) => each.name)),
        text,
      ).toEqual([name]);
    expect(parseShell("echo 'a\\\nb'").commands[0]?.words[1]?.text).toBe("a\\\nb");
  });

  test("POL-2: a text of joined lines alone is read in bounded time", () => {
    const began = workMs();
    expect(parseShell("''\\\n".repeat(16_000)).problems).toEqual(["it joins too many lines"]);
    expect(parseShell("a\\\n".repeat(20_000)).problems).toEqual([]);
    expect(workMs() - began).toBeLessThan(1_000);
  });

  test("AP-15: a subscript with blanks, operators or expansions belongs to an assignment; what is inside is judged, too", () => {
    for (const text of ["A[0 ]=1 sudo ls", "A[0;id]=1 sudo ls", "A[$i]+=1 sudo ls", "A[0;sudo ls]=1 id"]) {
      expect(names(text), text).toContain("sudo");
      expect(parseShell(text).problems, text).toHaveLength(1);
    }
    expect(parseShell("A[0]=1 B[x]+=2 npm test").problems).toEqual([]);
  });
});
