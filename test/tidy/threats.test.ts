/** docs/THREAT_MODEL.md names tests that exist. */
import { describe, expect, test } from "vitest";
import { projectFiles } from "./files.ts";

const ROW = /^\| ([A-Z]{1,2}-\d{2}) \| (.+) \| (`.+`) \|$/;
const [page] = projectFiles(/^docs\/THREAT_MODEL\.md$/);
const rows = (page?.lines ?? []).flatMap((line) => {
  const [, id = "", words = "", files = ""] = ROW.exec(line) ?? [];
  return id === "" ? [] : [{ id, words, files: files.split(", ").map((file) => file.slice(1, -1)) }];
});

describe("docs/THREAT_MODEL.md", () => {
  test("lists threats, each once", () => {
    const ids = rows.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(50);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test("names for every threat files whose tests name it", () => {
    const tests = new Map(projectFiles(/^test\/.*\.test\.ts$/).map(({ path, text }) => [path, text]));
    const missing = rows.flatMap(({ id, files }) =>
      files.filter((file) => !new RegExp(`\\b${id}\\b`).test(tests.get(file) ?? "")).map((file) => `${id}: ${file}`),
    );
    expect(missing).toEqual([]);
  });
});
