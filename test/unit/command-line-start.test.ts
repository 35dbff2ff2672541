/** What a start of the command line loads: each module costs every command some milliseconds. */
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { COMMAND_LINE } from "../support/compiled.ts";

/** What only a command that speaks to the server needs. */
const CLIENT = ["http", "net"];
/** Of TLS and what it needs, which only a terminal in a sandbox may want. */
const HEAVY = ["tls", "https", "crypto", "zlib"];
/** They read files that the schemas judge, so they need them at once. */
const WITH_SCHEMAS = ["agents/install", "agents/login", "agents/logout", "mcp/serve"];
const PARTS = dirname(COMMAND_LINE);

/** Which of Node's own modules are loaded when these parts of the program are. */
function loadedBy(...parts: readonly string[]): string[] {
  const script = `for (const part of ${JSON.stringify(parts)}) await import(part); console.log(process.moduleLoadList.join("\\n"))`;
  return execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).split("\n");
}

function among(names: readonly string[], loaded: readonly string[]): string[] {
  return names.filter((name) => loaded.includes(`NativeModule ${name}`));
}

/** A part of the program and what it imports, but for what it imports later. */
function textOf(part: string, seen = new Set<string>()): string {
  if (seen.has(part)) return "";
  seen.add(part);
  const text = readFileSync(join(PARTS, part), "utf8");
  const imports = [...text.matchAll(/^(?:import|export) .*?"\.\/([^"]+)";$/gm)];
  return text + imports.map(([, name = ""]) => textOf(name, seen)).join("");
}

/** The parts of the program that hold a command, by its name. */
function commandParts(): Map<string, string> {
  const found = readdirSync(PARTS).flatMap((part) => {
    const whole = part.endsWith(".js") ? readFileSync(join(PARTS, part), "utf8") : "";
    // The server runs some commands itself, for the front: that part is not the command line's.
    const text = whole.includes("// src/interfaces/front/") ? "" : whole;
    return [...text.matchAll(/^\/\/ src\/interfaces\/cli\/commands\/(.*)\.ts$/gm)].map(([, name = ""]) => [name, part] as const);
  });
  return new Map(found);
}

test("the command line loads nothing of Node but what a command without a server takes", () => {
  expect(among([...CLIENT, ...HEAVY], loadedBy(COMMAND_LINE))).toEqual([]);
});

test("a command that asks the server loads no more of Node than a request takes", () => {
  const loaded = loadedBy(COMMAND_LINE, join(PARTS, commandParts().get("ls") ?? ""));
  expect(among(CLIENT, loaded)).toEqual(CLIENT);
  expect(among(HEAVY, loaded)).toEqual([]);
});

test("few commands load the schemas before they have to", () => {
  const parts = [...commandParts()];
  expect(parts.length).toBeGreaterThan(60);
  const withSchemas = parts.filter(([, part]) => textOf(part).includes("// node_modules/zod/"));
  expect(withSchemas.map(([name]) => name).toSorted()).toEqual(WITH_SCHEMAS);
});
