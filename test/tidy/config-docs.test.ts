/** docs/CONFIG.md and the JSON schemas say what the config's schemas say; `node scripts/config-docs.ts` writes them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "jsonc-parser";
import { describe, expect, test } from "vitest";
import { renderConfigPage, renderConfigSchemas } from "../../scripts/config-docs.ts";
import { ProjectConfig } from "../../src/base/schema/config.ts";
import { root } from "./files.ts";

const document = (name: string): string => readFileSync(join(root, "docs", name), "utf8");

describe("docs/CONFIG.md", () => {
  const page = document("CONFIG.md");

  test("lists every key of both configs as the schemas have it", () => {
    expect(page.match(/<!-- keys: \w+ -->/g)).toEqual(["<!-- keys: project -->", "<!-- keys: user -->"]);
    expect(page).toBe(renderConfigPage(page));
  });

  test("describes every key", () => {
    const keys = page.split("\n").filter((line) => /^\| `[$\w.]+` \|/.test(line) && line.split("|").length > 5);
    expect(keys.length).toBeGreaterThan(30);
    expect(keys.filter((line) => line.split("|").at(-2)?.trim() === "")).toEqual([]);
  });

  test("shows an example that the schema accepts", () => {
    const example = /```jsonc\n([^]*?)```/.exec(page)?.[1] ?? "";
    expect(ProjectConfig.safeParse(parse(example)).error).toBeUndefined();
  });
});

describe("the JSON schemas for editors", () => {
  test.each(Object.keys(renderConfigSchemas()))("%s is current", (name) => {
    expect(document(name)).toBe(renderConfigSchemas()[name]);
  });
});
