/** Settings of other programs: one entry is put in or taken out, and everything else stays as it was written. */
import { describe, expect, test } from "vitest";
import { readEntry, withEntry } from "../../src/base/config/settings-edit.ts";

const ENTRY = { command: "/opt/viv", args: ["mcp", "--here"] };
const json = (text: string, isThere = true): string =>
  withEntry("json", "settings.json", text, ["mcpServers", "vivarium"], isThere ? ENTRY : undefined);
const toml = (text: string, isThere = true): string =>
  withEntry("toml", "config.toml", text, ["mcp_servers", "vivarium"], isThere ? ENTRY : undefined);

describe("an entry in settings", () => {
  test("goes into JSON with comments, trailing commas and its own indent, and out again without a trace", () => {
    const before = `// mine\n{\n    "theme": "dark", // at night\n    "mcpServers": {\n        /* keep */ "other": { "command": "x" },\n    },\n}\n`;
    const after = json(before);
    for (const kept of ["// mine", "// at night", "/* keep */", '"theme": "dark"']) expect(after).toContain(kept);
    expect(after).toContain('        "vivarium": {');
    expect(readEntry("json", "", after, ["mcpServers", "vivarium"])).toEqual(ENTRY);
    expect(json(after)).toBe(after);
    expect(readEntry("json", "", json(after, false), ["mcpServers", "other"])).toEqual({ command: "x" });
    expect(json(after, false)).not.toContain("vivarium");
  });

  test("makes a file where there is none, and leaves no empty section behind", () => {
    expect(JSON.parse(json(""))).toEqual({ mcpServers: { vivarium: ENTRY } });
    expect(JSON.parse(json(json('{ "a": 1 }'), false))).toEqual({ a: 1 });
    expect(json('{\r\n\t"a": 1\r\n}\r\n')).toContain('\r\n\t"mcpServers"');
  });

  test("goes into TOML as a table of its own, and the rest stays byte for byte", () => {
    const before = `# mine\nmodel = "o"  # fast\n\n[mcp_servers.other]\ncommand = "x"\n\n[[tables]]\na = 1\n`;
    const after = toml(before);
    expect(after.startsWith(before)).toBe(true);
    expect(readEntry("toml", "", after, ["mcp_servers", "vivarium"])).toEqual(ENTRY);
    expect(toml(after)).toBe(after);
    expect(toml(after, false)).toBe(before);
    const between = after.replace("[[tables]]", '[mcp_servers.vivarium.env]\nA = "b"\n\n[[tables]]');
    expect(toml(between, false)).toContain("[[tables]]\na = 1");
  });

  test("is not written into a file that can't be read, or that has a form in which the rest would change", () => {
    expect(() => json('{ "a": ')).toThrow(/settings.json can't be read \(line 1/);
    expect(() => json("[1]")).toThrow(/does not hold an object/);
    expect(() => toml("a = = 1")).toThrow(/config.toml can't be read/);
    for (const inline of ['mcp_servers = { other = { command = "x" } }\n', '[mcp_servers]\nvivarium = { command = "y" }\n'])
      expect(() => toml(inline)).toThrow(/can't be (read|edited)/);
    // A head within a text of several lines is no head.
    expect(() => toml('[mcp_servers.vivarium]\ncommand = """\n[other]\n"""\n', false)).toThrow(/nothing was changed/);
  });
});
