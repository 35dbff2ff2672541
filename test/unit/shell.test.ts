import { describe, expect, test } from "vitest";
import { compile, matches, mayMatch, UNKNOWN } from "../../src/base/policy/pattern.ts";
import { decide, effectivePolicy } from "../../src/base/policy/policy.ts";
import { parseShell } from "../../src/base/policy/shell/shell.ts";
import { workMs } from "../support/work.ts";

function commands(text: string): string[][] {
  return parseShell(text).commands.map(({ words }) => words.map((word) => word.text));
}

describe("the shell parser", () => {
  test("takes quotes off and keeps what they hold together", () => {
    expect(commands(`a 'b c' "d e" f\\ g $'h\\ti' j"k"'l'`)).toEqual([["a", "b c", "d e", "f g", "h\ti", "jkl"]]);
  });

  test("finds commands in lists, groups, loops, functions and substitutions", () => {
    expect(commands("a;b&c&&d||e|f\ng").flat()).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
    expect(commands("if a; then b; elif c; then d; else e; fi").flat()).toEqual(["a", "b", "c", "d", "e"]);
    expect(commands("for x in 1 2; do a; done; while b; do c; done").flat()).toEqual(["a", "b", "c"]);
    expect(commands("case x in a|b) c;; (d) e;& *) f; esac; g").flat()).toEqual(["c", "e", "f", "g"]);
    expect(commands("f() { a; }; function g { b; }; h() (c)").flat()).toEqual(["a", "b", "c"]);
    expect(
      commands('$(a `b` "$(c)" <(d))')
        .flat()
        .filter((word) => /^[a-d]$/.test(word))
        .sort(),
    ).toEqual(["a", "b", "c", "d"]);
  });

  test("reads heredocs, and runs what stands in them only if the delimiter is not quoted", () => {
    expect(commands("cat <<A; b\n$(x)\nA\nc").flat().toSorted()).toEqual(["b", "c", "cat", "x"]);
    expect(commands("cat <<'A'\n$(x)\nA\nc")).toEqual([["cat"], ["c"]]);
    expect(commands("cat <<-A\n\tx\n\tA\nc")).toEqual([["cat"], ["c"]]);
  });

  test("keeps redirections apart from words", () => {
    const [command] = parseShell("a >b 2>&1 <c >>d &>e <<<f g").commands;
    expect(command?.words.map(({ text }) => text)).toEqual(["a", "g"]);
    expect(command?.redirects.map(({ operator, target }) => operator + target.text)).toEqual([">b", ">&1", "<c", ">>d", "&>e", "<<<f"]);
  });

  test("says what it does not understand", () => {
    for (const text of ["a 'b", 'a "b', "a $(b", "a `b", "(a", "a)", "a ${b", "case x in", "a <", "x (y)"])
      expect(parseShell(text).problems).not.toEqual([]);
    for (const text of ["a", "a 'b'", "(a)", "", "# a", "a # b"]) expect(parseShell(text).problems).toEqual([]);
  });
});

describe("patterns", () => {
  test("match as written, and without arguments where they end with a blank and a star", () => {
    const yes = (pattern: string, text: string): boolean => matches(compile(pattern), text);
    expect([
      yes("a*c", "abc"),
      yes("a*c", "ac"),
      yes("a*b*c", "axbyc"),
      yes("*", ""),
      yes("npm *", "npm"),
      yes("npm *", "npm x"),
    ]).not.toContain(false);
    expect([
      yes("a*c", "ab"),
      yes("a*a", "a"),
      yes("npm *", "npmx"),
      yes("a*bc*c", "abc"),
      yes("a", "ab"),
      yes("*.ts", "a.tsx"),
    ]).not.toContain(true);
  });

  test("may match what is not known yet", () => {
    expect(mayMatch(compile("git push *"), `git ${UNKNOWN}`)).toBe(true);
    expect(mayMatch(compile("git push *"), `npm ${UNKNOWN}`)).toBe(false);
    expect(mayMatch(compile("rm -rf *"), `rm -${UNKNOWN} x`)).toBe(true);
    expect(mayMatch(compile("*b"), `a${UNKNOWN}c`)).toBe(false);
  });

  test("AP-11: a hostile pattern costs no more than its length", () => {
    const pattern = compile(`${"*a".repeat(500)}*b`);
    const began = workMs();
    for (const text of ["a".repeat(60_000), `${"a".repeat(5_000)}${UNKNOWN}`]) {
      expect(matches(pattern, text)).toBe(false);
      mayMatch(pattern, text);
    }
    expect(workMs() - began).toBeLessThan(1_000);
  });
});

/** The same numbers in every run. */
function randomness(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const PIECES = [
  ..."$(){}[]<>|&;`'\"\\#~*?!=\n\r\t \u0000\u00a0\ud800".split(""),
  ..."$( $(( (( )) ${ ${x:- <( << <<- <<< <<EOF EOF [[ ]] ;; && || |& &> >& 2>&1 $' $\" \\\n".split(" "),
  ..." if then else fi for x in do done case esac while function f() { } npm test git rm -rf sudo env xargs find -exec sh -c eval bash sed awk tar "
    .split(" ")
    .map((word) => ` ${word} `),
];

describe("any text", () => {
  test("POL-2: gets a verdict in bounded time and never an error", () => {
    const random = randomness(7);
    const policies = [effectivePolicy({}), effectivePolicy({ level: 3 }), effectivePolicy({ yolo: 3 })];
    let slowest = 0;
    for (let round = 0; round < 6_000; round += 1) {
      const length = Math.floor(random() * 60);
      const text = Array.from({ length }, () => PIECES[Math.floor(random() * PIECES.length)] ?? "").join("");
      const began = workMs();
      const { verdict } = decide(policies[round % 3] ?? effectivePolicy({}), { kind: "command", command: text });
      slowest = Math.max(slowest, workMs() - began);
      expect(["allow", "ask", "deny"]).toContain(verdict);
    }
    expect(slowest).toBeLessThan(500);
  });

  test.each([
    ["brackets", "(".repeat(60_000)],
    ["double brackets", "((".repeat(30_000)],
    ["double brackets with words", "((a ".repeat(15_000)],
    ["substitutions", "$(".repeat(30_000)],
    ["parameters", "${x:-".repeat(12_000)],
    ["backticks", "`".repeat(60_000)],
    ["escaped backticks", "\\`".repeat(30_000)],
    ["quotes", "'\"".repeat(30_000)],
    ["heredocs", "<<A ".repeat(15_000)],
    ["heredocs with lines", "a <<A\n".repeat(10_000)],
    ["cases", "case x in a) ".repeat(5_000)],
    ["comments", "#\n".repeat(30_000)],
    ["braces", "{a,".repeat(20_000)],
    ["arithmetic", "$((".repeat(20_000)],
    ["old arithmetic", "$[".repeat(30_000)],
    ["blanks", " ".repeat(65_000)],
    ["pipes", "a|".repeat(30_000)],
    ["wrappers", "env ".repeat(15_000)],
    ["nested wrappers", "sh -c ".repeat(10_000)],
    ["variables", "rm $X ".repeat(10_000)],
    ["long words", `npm ${"x".repeat(65_000)}`],
    ["too long", "npm test;".repeat(50_000)],
    ["addresses", `curl ${"http://a.b@".repeat(5_000)}`],
    ["dots", `curl ${"a.".repeat(30_000)}`],
    ["packages", `pip install ${"a@".repeat(30_000)}`],
    ["sed", `sed ${"s/a/b/;".repeat(8_000)}`],
    ["folders", "cd a;".repeat(12_000)],
  ])("AP-11: %s without end are judged in time", (_, text) => {
    const began = workMs();
    for (const level of [1, 3] as const) decide(effectivePolicy({ level }), { kind: "command", command: text });
    expect(workMs() - began).toBeLessThan(3_000);
  });
});
