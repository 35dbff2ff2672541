import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { claude } from "../../src/work/agents/adapters/claude.ts";
import { codex } from "../../src/work/agents/adapters/codex.ts";
import { gemini } from "../../src/work/agents/adapters/gemini.ts";
import { opencode } from "../../src/work/agents/adapters/opencode.ts";
import { pi } from "../../src/work/agents/adapters/pi.ts";

const WORDS = { tool: "at its next tool call", turn: "after its turn", never: "never" } as const;
const TOOLS = { mcp: "by MCP", plugin: "by the plugin", none: "no" } as const;

describe("docs/AGENTS.md", () => {
  const rows = readFileSync(new URL("../../docs/AGENTS.md", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| `") && line.split("|").length === 9)
    .map((line) => line.split("|").map((cell) => cell.trim()));

  test("says of each agent what its adapter says", () => {
    const agents = [claude, codex, opencode, pi, gemini];
    expect(rows.map(([, name]) => name)).toEqual(agents.map(({ name }) => `\`${name}\``));
    for (const [index, { abilities }] of agents.entries()) {
      const [, , , messages, interrupt, resume, asks, tools] = rows[index] ?? [];
      expect([messages, interrupt, resume, asks?.split(",")[0], tools]).toEqual([
        WORDS[abilities.messages],
        abilities.interrupt ? "yes" : "no",
        abilities.resume ? "yes" : "no",
        abilities.asks ? "yes" : "no",
        TOOLS[abilities.tools],
      ]);
    }
  });
});
