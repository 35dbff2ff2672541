/** Commands that are not allowed, written in other ways that a shell runs alike: none of them may become allowed. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { decide, effectivePolicy, type EffectivePolicy } from "../../src/base/policy/policy.ts";
import { parseShell } from "../../src/base/policy/shell/shell.ts";
import type { AutonomyLevel, Role, Verdict, YoloLevel } from "../../src/base/schema/policy.ts";
import { Randomness } from "../support/randomness.ts";
import { AROUND, edited, PLAIN, WITHIN } from "../support/shell-mutations.ts";
import { workMs } from "../support/work.ts";

interface Row {
  readonly at: string;
  readonly command: string;
  readonly verdict: Verdict;
}

const rows = readFileSync(new URL("../corpus/policy-commands.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Row);
/** Those that a shell would run: what it can't read may become harmless with more text around it. */
const forbidden = rows.filter(({ verdict, command }) => verdict !== "allow" && parseShell(command).problems.length === 0);

const policies = new Map<string, EffectivePolicy>();
function policyAt(at: string): EffectivePolicy {
  const known = policies.get(at);
  if (known !== undefined) return known;
  const [kind = "", number] = at.split(" ");
  const project = "/home/me/app";
  const made =
    kind === "level"
      ? effectivePolicy({ project, level: Number(number) as AutonomyLevel })
      : kind === "yolo"
        ? effectivePolicy({ project, yolo: Number(number) as YoloLevel })
        : effectivePolicy({ project, role: kind as Role });
  policies.set(at, made);
  return made;
}

describe("a command that is not allowed", () => {
  test("POL-2, AP-15: is not allowed in any of the ways a shell runs it alike", () => {
    const wrong: { at: string; text: string }[] = [];
    for (const { at, command } of forbidden)
      for (const [index, around] of AROUND.entries()) {
        const text = around(command);
        if (decide(policyAt(at), { kind: "command", command: text }).verdict === "allow") wrong.push({ at, text: `${index}: ${text}` });
      }
    expect(wrong).toEqual([]);
  }, 60_000);

  test("POL-2, AP-15: is not allowed by quotes, blanks and escapes that a shell takes away", () => {
    const random = new Randomness(3);
    const wrong: { at: string; text: string }[] = [];
    let tried = 0;
    for (const { at, command } of forbidden.filter((row) => PLAIN.test(row.command)))
      for (const within of WITHIN) {
        const text = within(command, random);
        tried += 1;
        if (decide(policyAt(at), { kind: "command", command: text }).verdict === "allow") wrong.push({ at, text });
      }
    expect(wrong).toEqual([]);
    expect(tried).toBeGreaterThan(500);
  });

  test("POL-2, AP-15: is not allowed by several of them at once, in bounded time", () => {
    const random = new Randomness(11);
    const wrong: { at: string; text: string }[] = [];
    let slowest = 0;
    for (let round = 0; round < 4_000; round += 1) {
      const { at, command } = random.of(forbidden);
      let text = PLAIN.test(command) && random.next() < 0.7 ? random.of(WITHIN)(command, random) : command;
      for (let layers = 1 + random.below(3); layers > 0; layers -= 1) text = random.of(AROUND)(text);
      const began = workMs();
      const { verdict } = decide(policyAt(at), { kind: "command", command: text });
      slowest = Math.max(slowest, workMs() - began);
      if (verdict === "allow") wrong.push({ at, text });
    }
    expect(wrong).toEqual([]);
    expect(slowest).toBeLessThan(500);
  }, 60_000);

  test("AP-15: as a control, an allowed command stays allowed in many of the same ways", () => {
    const policy = effectivePolicy({ level: 1, project: "/home/me/app" });
    const allowed = AROUND.filter((around) => decide(policy, { kind: "command", command: around("git status") }).verdict === "allow");
    expect(allowed.length).toBeGreaterThan(AROUND.length / 2);
  });
});

describe("any bytes", () => {
  test("POL-2: are parsed in bounded time, and never an error, however a command is cut, doubled or mixed", () => {
    const random = new Randomness(29);
    const deadline = performance.now() + 20_000;
    let [rounds, slowest] = [0, 0];
    for (; rounds < 20_000 && performance.now() < deadline; rounds += 1) {
      const text = edited(random.of(rows).command, random, () => random.of(rows).command);
      const began = workMs();
      const script = parseShell(text);
      slowest = Math.max(slowest, workMs() - began);
      expect(Array.isArray(script.commands) && Array.isArray(script.problems)).toBe(true);
    }
    expect(rounds).toBeGreaterThan(2_000);
    expect(slowest).toBeLessThan(500);
  }, 60_000);
});
