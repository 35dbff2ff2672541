/** Counts tests in the output of a check. The output was written inside and may hold anything: it is read line by line. */
import { stripVTControlCharacters } from "node:util";
import type { TestCounts } from "../../base/schema/check.ts";

type Numbers = Omit<TestCounts, "format">;
type Reader = (text: string, lines: readonly string[]) => Numbers | undefined;

const LONGEST_LINE = 4096;

/** The most telling kind first: a runner's own summary says more than lines that look like TAP. */
const READERS: readonly (readonly [TestCounts["format"], Reader])[] = [
  ["junit", readJunit],
  ["vitest", readVitest],
  ["pytest", readPytest],
  ["node", readNode],
  ["tap", readTap],
];

export function countTests(output: string): TestCounts | null {
  const text = stripVTControlCharacters(output);
  const lines = text.split(/\r?\n/).map((line) => line.slice(0, LONGEST_LINE));
  for (const [format, read] of READERS) {
    const counts = read(text, lines);
    if (counts !== undefined) return { format, ...counts };
  }
  return null;
}

/** Suites may be nested and their totals repeat each other; cases are counted once. */
function readJunit(text: string): Numbers | undefined {
  if (!/<testsuites?[\s>]/.test(text)) return undefined;
  const cases = text.split(/<testcase(?=[\s>/])/).slice(1);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const one of cases) {
    const opened = one.slice(0, one.indexOf(">") + 1);
    const inside = opened.endsWith("/>") ? "" : one.split("</testcase>", 1)[0];
    if (/<(failure|error)[\s>/]/.test(inside ?? "")) counts.failed += 1;
    else if (/<skipped[\s>/]/.test(inside ?? "")) counts.skipped += 1;
    else counts.passed += 1;
  }
  return counts;
}

/** `Tests  1 failed | 4 passed | 1 skipped (6)` */
function readVitest(_: string, lines: readonly string[]): Numbers | undefined {
  const found = lines.flatMap((line) => /^\s*Tests {2}((?:\d+ \w+(?: \| )?)+)(?: \(\d+\))?\s*$/.exec(line)?.[1] ?? []);
  return found.length === 0 ? undefined : sum(found.map((summary) => words(summary, { failed: "failed", passed: "passed" })));
}

/** `=== 1 failed, 4 passed, 1 error in 0.12s ===`, or the same without the frame. */
function readPytest(_: string, lines: readonly string[]): Numbers | undefined {
  const found = lines.flatMap((line) => /^(?:=+ )?((?:\d+ [a-z]+,? )+)in \d[\d.]*s(?: \([\d:, days]+\))?(?: =+)?$/.exec(line)?.[1] ?? []);
  const meaning = { failed: "failed", error: "failed", errors: "failed", passed: "passed", xpassed: "passed" } as const;
  return found.length === 0 ? undefined : sum(found.map((summary) => words(summary, meaning)));
}

/** `ℹ tests 6`, or `# tests 6` where it speaks TAP; cancelled tests did not pass. */
function readNode(_: string, lines: readonly string[]): Numbers | undefined {
  const counts = { tests: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  const seen = new Set<string>();
  for (const line of lines) {
    const [, key, value] = /^(?:ℹ|#) (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})$/.exec(line) ?? [];
    if (key === undefined) continue;
    seen.add(key);
    counts[key as keyof typeof counts] += Number(value);
  }
  if (!seen.has("tests") || !seen.has("pass") || !seen.has("fail")) return undefined;
  return { passed: counts.pass, failed: counts.fail + counts.cancelled, skipped: counts.skipped + counts.todo };
}

/** Lines at the left edge; what is indented belongs to a subtest that is counted by its parent. */
function readTap(_: string, lines: readonly string[]): Numbers | undefined {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const isPlanned = lines.some((line) => /^1\.\.\d{1,9}(\s|$)/.test(line));
  if (!isPlanned && !lines.some((line) => /^TAP version \d+$/.test(line))) return undefined;
  for (const line of lines) {
    const [, not, rest] = /^(not )?ok\b(.*)$/.exec(line) ?? [];
    if (rest === undefined) continue;
    if (/# *(skip|todo)/i.test(rest)) counts.skipped += 1;
    else if (not === undefined) counts.passed += 1;
    else counts.failed += 1;
  }
  return counts;
}

/** Numbers with a word each; words without a meaning did not run. */
function words(summary: string, meaning: Readonly<Record<string, "passed" | "failed">>): Numbers {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, number, word = ""] of summary.matchAll(/(\d{1,9}) ([a-z]+)/g)) {
    if (word.startsWith("warning")) continue;
    counts[meaning[word] ?? "skipped"] += Number(number);
  }
  return counts;
}

function sum(all: readonly Numbers[]): Numbers {
  return all.reduce((one, other) => ({
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  }));
}
