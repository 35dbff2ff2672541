/** docs/THREAT_MODEL.md names tests that exist, and every system call that is refused. */
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
    const tests = new Map(projectFiles(/^test\/.*(\.test|-contract)\.ts$/).map(({ path, text }) => [path, text]));
    const missing = rows.flatMap(({ id, files }) =>
      files.filter((file) => !new RegExp(`\\b${id}\\b`).test(tests.get(file) ?? "")).map((file) => `${id}: ${file}`),
    );
    expect(missing).toEqual([]);
  });

  test("gives the reason for every system call that the filter refuses or looks at, and for no other", () => {
    const [rules] = projectFiles(/^native\/init\/walls\/seccomp_rules\.h$/);
    const [filter] = projectFiles(/^native\/init\/walls\/seccomp\.c$/);
    const list = rules?.text.split("refused_calls[] = {")[1]?.split("};")[0] ?? "";
    const refused = [...list.matchAll(/(?:SYS|NR)_(\w+)/g)].map(([, name = ""]) => name);
    const checked = [...(filter?.text ?? "").matchAll(/actions\[SYS_(\w+)\] =/g)].map(([, name = ""]) => name);
    expect(refused.length).toBeGreaterThan(40);
    expect(checked.length).toBeGreaterThan(5);
    expect(callsOf("refused calls")).toEqual(refused.toSorted());
    expect(callsOf("checked calls")).toEqual(checked.toSorted());
  });
});

/** The names in the first column of a table whose rows all say why. */
function callsOf(table: string): string[] {
  const text = page?.text.split(`<!-- ${table} -->`)[1]?.split("<!-- end -->")[0] ?? "";
  const columns = text
    .trim()
    .split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(columns.filter(([, , why = ""]) => why.length < 8)).toEqual([]);
  return columns.flatMap(([, names = ""]) => [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name)).toSorted();
}
