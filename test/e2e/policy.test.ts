import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { viv, type Answer } from "../support/viv.ts";
import { TestServer } from "../support/server.ts";

describe("viv policy", () => {
  let server: TestServer;
  const run = (...words: string[]): Answer => viv(server, ["policy", ...words], { cwd: server.project });
  const write = (name: string, value: unknown): void => writeFileSync(join(server.project, name), JSON.stringify(value));

  beforeAll(async () => {
    server = await TestServer.start({ files: { "a.txt": "a\n" } });
  });
  afterAll(async () => server.remove());

  test("POL-1, POL-2: explain shows every part, for people and as JSON", () => {
    const line = "npm test && rm -rf /";
    const shown = run("explain", "--", line);
    expect(shown).toMatchObject({ code: 0, err: "" });
    expect(shown.out).toMatch(/^allow +npm test +bash: npm \*/m);
    expect(shown.out).toMatch(/^deny +rm -rf \/ +bash: rm -rf \*/m);
    const { verdict, parts } = JSON.parse(run("explain", "--json", "--", line).out);
    expect([verdict, parts.map((part: { command: string; verdict: string }) => [part.command, part.verdict])]).toEqual([
      "deny",
      [
        ["npm test", "allow"],
        ["rm -rf /", "deny"],
      ],
    ]);
  });

  test("POL-3, POL-4: levels and roles are chosen by options, and exclude each other", () => {
    const verdict = (...words: string[]): unknown => JSON.parse(run("explain", "--json", ...words).out).verdict;
    expect(verdict("--level", "3", "--", "python app.py")).toBe("allow");
    expect(verdict("--yolo", "4", "--", "sudo ls")).toBe("allow");
    expect(verdict("--role", "reviewer", "--", "ls")).toBe("deny");
    expect(run("explain", "--level", "1", "--yolo", "1", "--", "ls")).toMatchObject({ code: 2, err: expect.stringContaining("exclude") });
    expect(run("explain", "--level", "4", "--", "ls").code).toBe(2);
  });

  test("AP-16: rules of a project tighten at once, and widen once they are trusted", () => {
    const verdict = (line: string): unknown => JSON.parse(run("explain", "--json", "--", line).out).verdict;
    write("vivarium.json", { policy: { bash: { "npm *": "deny", "rm -rf *": "allow", "ls *": "allow" } } });
    expect(["npm test", "rm -rf x", "ls"].map(verdict)).toEqual(["deny", "deny", "ask"]);
    expect(viv(server, ["trust", "--yes"], { cwd: server.project }).out).toContain("rm -rf *");
    expect(["npm test", "rm -rf x", "ls"].map(verdict)).toEqual(["deny", "allow", "allow"]);
  });

  test("the examples beside rules are run: it ends with 1 if one is wrong", () => {
    const policy = (match: string): unknown => ({
      policy: { bash: { "npm *": "ask" }, examples: { bash: { "npm *": { match: [match] } } } },
    });
    write("vivarium.json", policy("cd x; npm test"));
    expect(run("test")).toMatchObject({ code: 0, out: "1 passed, 0 failed.\n" });
    write("vivarium.json", policy("yarn test"));
    expect(run("test").code).toBe(1);
    expect(JSON.parse(run("test", "--json").out).failures).toHaveLength(1);
  });

  test("POL-8, POL-9: agents, triage and import answer", () => {
    write("vivarium.json", {});
    expect(run("agents").out).toContain("Self-Decision Framework");
    expect(run("triage", "--level", "3", "--", "git push").out).toMatch(/^propose\n/);
    write("opencode.json", { permission: { bash: { "git push *": "deny", "git *": "allow" } } });
    const imported = run("import", "opencode.json");
    expect(JSON.parse(imported.out)).toEqual({ policy: { bash: { "git push *": "deny", "git *": "allow" } } });
    expect(imported.err).toContain("most specific");
    expect(run("import", "missing.json").code).toBe(2);
  });
});
