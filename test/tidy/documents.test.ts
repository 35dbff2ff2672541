/** What the documents say equals what the code and the tests say, both ways. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ERRORS } from "../../src/base/schema/errors.ts";
import { projectFiles, root, type ProjectFile } from "./files.ts";

function document(name: string): ProjectFile {
  const [file] = projectFiles(new RegExp(`^docs/${name}\\.md$`));
  if (file === undefined) throw new Error(`docs/${name}.md is missing`);
  return file;
}

/** Rows of the tables of a document, cell by cell, without heads. */
function rows(file: ProjectFile): string[][] {
  return file.lines
    .filter((line) => line.startsWith("|") && !/^\|[\s|:-]+\|$/.test(line))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf("|"))
        .split("|")
        .map((cell) => cell.trim()),
    );
}

describe("docs/ERRORS.md", () => {
  test("lists exactly the error codes that exist", () => {
    const listed = rows(document("ERRORS")).flatMap(([first = ""]) => /^`([a-z_]+)`$/.exec(first)?.[1] ?? []);
    expect([...listed].sort()).toEqual(Object.keys(ERRORS).sort());
  });
});

describe("docs/ARCHITECTURE.md and docs/dev", () => {
  const pages = projectFiles(/^docs\/(ARCHITECTURE|dev\/[a-z-]+)\.md$/);

  test("name files and folders that exist", () => {
    const named = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/`((?:src|native|test|docs|scripts)\/[^`*<>]*)`/g)].map(([, name = ""]) => ({ path, name })),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(({ name }) => !existsSync(join(root, name)))).toEqual([]);
  });

  /** The walks: by their title, each step's file and the functions to open in it. */
  const walks = new Map(
    document("ARCHITECTURE")
      .text.split("\n### ")
      .slice(1)
      .map((section) => {
        const [title = "", ...lines] = section.split("\n");
        const steps = lines.flatMap((line) => {
          const [, file, functions = ""] = /^\d+\. `([^`]+)`((?:,? `[#\w]+`)*):/.exec(line) ?? [];
          return file === undefined ? [] : [{ file, functions: [...functions.matchAll(/`#?(\w+)`/g)].map(([, name = ""]) => name) }];
        });
        return [title, steps] as const;
      }),
  );

  test("lead through functions that their files hold", () => {
    expect([...walks.keys()]).toHaveLength(5);
    const wrong = [...walks.values()].flat().filter(({ file, functions }) => {
      const text = readFileSync(join(root, file), "utf8");
      return functions.some((name) => !new RegExp(`\\b${name}\\b[:=(<]`).test(text));
    });
    expect(wrong).toEqual([]);
  });

  test("follow create in at most 12 files, and exec in at most 8", () => {
    const files = (title: string): number => new Set(walks.get(title)?.map(({ file }) => file)).size;
    expect(files("`viv create`")).toBeGreaterThan(6);
    expect(files("`viv create`")).toBeLessThanOrEqual(12);
    expect(files("`viv exec`")).toBeGreaterThan(5);
    expect(files("`viv exec`")).toBeLessThanOrEqual(8);
  });
});

describe("docs/REQUIREMENTS.md", () => {
  const requirements = rows(document("REQUIREMENTS")).filter(([id = ""]) => /^[A-Z0-9]+-\d+$/.test(id));

  test("gives every requirement one of the states open, partly and done", () => {
    expect(requirements.length).toBeGreaterThan(90);
    expect(requirements.filter(([, , status = ""]) => !["open", "partly", "done"].includes(status))).toEqual([]);
  });

  test("lists every requirement once", () => {
    const ids = requirements.map(([id]) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  const titles = new Map(projectFiles(/(\.test|-contract)\.ts$/).map(({ path, text }) => [path, titlesIn(text)]));
  const names = (title: string | undefined, id: string): boolean => new RegExp(`\\b${id}\\b(?!\\d)`).test(title ?? "");

  test("marks as done only what the title of a test names", () => {
    const named = [...titles.values()].join("\n");
    const unproved = requirements.filter(([id = "", , status]) => status === "done" && !names(named, id));
    expect(unproved.map(([id]) => id)).toEqual([]);
  });

  test("names for every requirement files with a test that has its id in the title, and none only for what is open", () => {
    const wrong = requirements.flatMap(([id = "", , status, tests = ""]) => {
      if (tests === "none yet") return status === "open" ? [] : [`${id}: none`];
      const files = tests.split(", ").map((file) => file.slice(1, -1));
      return files.filter((file) => !names(titles.get(file), id)).map((file) => `${id}: ${file}`);
    });
    expect(wrong).toEqual([]);
  });
});

/** The titles of a file's tests and of their groups, a line each. */
function titlesIn(text: string): string {
  const found = text.matchAll(/\b(?:describe|test|it)\b[^("'`]*(?:\([^()]*\)\s*)?\(\s*(["'`])(.*?)\1/g);
  return [...found].map(([, , title]) => title).join("\n");
}
