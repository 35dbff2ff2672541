/** What the text of the project must not hold. */
import { describe, expect, test } from "vitest";
import { findLines, projectFiles } from "./files.ts";

const lineMax = 400;

const code = projectFiles(/(\.(ts|js|c|h|sh)|^bin\/viv|^\.ci\/run)$/);
const typescript = projectFiles(/\.ts$/);
const library = projectFiles(/^src\/.*\.ts$/).filter(({ path }) => !path.endsWith(".test.ts"));
const everything = projectFiles(/./).filter(({ path }) => path !== "package-lock.json" && path !== "LICENSE" && !path.endsWith(".png"));

// The brackets keep this file from holding what it looks for.
const actorless = /\b(who[e]ver|nob[o]dy|someb[o]dy|anyb[o]dy|everyb[o]dy)\b/i;
/** The account of uid 65534, to which files of unmapped users belong inside. */
const accountOfUid65534 = /their files belong to nob[o]dy inside/;
const unfinished = [/\bTOD[O]\b/, /\bFIXM[E]\b/, /\bXX[X]\b/];

describe("the text of the project", () => {
  test(`has no code file over ${lineMax} lines`, () => {
    const long = code.filter(({ lines }) => lines.length - 1 > lineMax);
    expect(long.map(({ path, lines }) => `${path}: ${lines.length - 1}`)).toEqual([]);
  });

  test.each(unfinished)("holds no unfinished work marked %s", (word) => {
    expect(findLines(everything, word)).toEqual([]);
  });

  test("names who acts: the server, the cell, the caller, the person, the sandbox", () => {
    const plain = projectFiles(/^((src|native|docs|bench|scripts|examples)\/.*|README\.md|CONTRIBUTING\.md)$/);
    const vague = plain.map((file) => ({ ...file, lines: file.lines.map((line) => line.replace(accountOfUid65534, "")) }));
    expect(findLines(vague, actorless)).toEqual([]);
  });

  test("names who acts in the titles of tests", () => {
    const title = new RegExp(`\\b(test|it|describe)\\b.*["\`].*${actorless.source}.*["\`], `, "i");
    expect(findLines(typescript, title)).toEqual([]);
  });

  test("does not switch the type checker off", () => {
    expect(findLines(typescript, /\bas an[y]\b|@ts-ignor[e]|@ts-nochec[k]/)).toEqual([]);
  });

  test("swallows no error without a word", () => {
    const empty = typescript.filter(({ text }) => /\bcatch\s*(\([^)]*\)\s*)?\{\s*\}/.test(text));
    expect(empty.map(({ path }) => path)).toEqual([]);
  });

  test("prints only where a person reads: in the command line, scripts and the benchmark", () => {
    const printing = /\bconsole\.|\bprocess\.(stdout|stderr)\b/;
    const silent = library.filter(({ path }) => !path.startsWith("src/interfaces/cli/") && path !== "src/server-main.ts");
    expect(findLines(silent, printing)).toEqual([]);
  });

  test("reads the environment only in src/config; the two programs' main files hand it on", () => {
    const other = library.filter(
      ({ path }) => !path.startsWith("src/base/config/") && path !== "src/interfaces/cli/main.ts" && path !== "src/server-main.ts",
    );
    expect(findLines(other, /\bprocess\.env\b/)).toEqual([]);
  });

  test("names no folder of the machine it was written on", () => {
    const documents = projectFiles(/(\.md|\.json|\.jsonc|\.sh|\.yml)$/).filter(({ path }) => path !== "package-lock.json");
    expect(findLines(documents, /(^|[\s"'`(=])\/(work|root)\/[A-Za-z]/)).toEqual([]);
  });
});
