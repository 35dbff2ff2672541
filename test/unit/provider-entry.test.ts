/** `viv agents login` writes into a file that belongs to the user. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withProvider, writeConfig } from "../../src/base/config/provider-entry.ts";

describe("a model API in the user's config", () => {
  let place: string;
  let file: string;
  const added = (): string => {
    writeConfig(withProvider(file, "anthropic", { secret: "anthropic" }));
    return readFileSync(file, "utf8");
  };

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "viv-entry-"));
    file = join(place, "config.json");
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  test("is added beside comments, other keys and other providers, which stay as they are", () => {
    const before = `{
    // mine
    "budgets": { "day": 3 }, /* enough */
    "models": {
        "openai": { "secret": "openai" }, // work
    },
}
`;
    writeFileSync(file, before);
    expect(added()).toBe(before.replace('"models": {\n', '"models": {\n        "anthropic": { "secret": "anthropic" },\n'));
  });

  test.each([
    ["{}", '{\n  "models": {\n    "anthropic": { "secret": "anthropic" }\n  }\n}'],
    ['{"spares":false}', '{ "models": {\n    "anthropic": { "secret": "anthropic" }\n  },"spares":false}'],
    ["{ // mine\n}\n", '{ // mine\n  "models": {\n    "anthropic": { "secret": "anthropic" }\n  }\n}\n'],
    ['{\n\t"models": {}\n}', '{\n\t"models": {\n\t\t"anthropic": { "secret": "anthropic" }\n\t}\n}'],
    [
      '{\n "models": { "openai": { "secret": "o" } }\n}',
      '{\n "models": { "anthropic": { "secret": "anthropic" }, "openai": { "secret": "o" } }\n}',
    ],
  ])("is added to %j", (before, after) => {
    writeFileSync(file, before);
    expect(added()).toBe(after);
  });

  test("is shown as the lines that change", () => {
    writeFileSync(file, '{\n  "spares": false\n}\n');
    const { shown } = withProvider(file, "openai", { secret: "openai" });
    expect(shown).toEqual(['+   "models": {', '+     "openai": { "secret": "openai" }', "+   },"]);
    expect(readFileSync(file, "utf8")).not.toContain("openai");
  });

  test("makes a config that was not there or empty, for its user alone, and keeps the rights of one that was", () => {
    file = join(place, "below/it/config.json");
    expect(JSON.parse(added())).toEqual({ models: { anthropic: { secret: "anthropic" } } });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(file, "");
    chmodSync(file, 0o640);
    expect(JSON.parse(added())).toEqual({ models: { anthropic: { secret: "anthropic" } } });
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(readdirSync(join(place, "below/it"))).toEqual(["config.json"]);
  });

  test("is not added to a config that has a mistake, or to a link", () => {
    writeFileSync(file, '{ "models": 3 }');
    expect(added).toThrow(expect.objectContaining({ code: "config_invalid" }));
    rmSync(file);
    symlinkSync(join(place, "elsewhere"), file);
    expect(added).toThrow(expect.objectContaining({ code: "config_invalid" }));
  });
});
