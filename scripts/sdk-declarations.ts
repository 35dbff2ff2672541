/** The published types of the SDK: three files that need no other, from what the compiler says of its sources. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const EMITTED = join(root, ".cache", "sdk-declarations");
const SDK = join(EMITTED, "interfaces", "sdk");

export interface Declaration {
  readonly name: string;
  /** With its comment. */
  readonly text: string;
}

/** What stands in the first column begins a declaration, or closes one. */
const BEGINS = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|const|function) (\w+)/;

/** The declarations of one file. Imports and re-exports are none. */
export function declarationsIn(text: string): Declaration[] {
  const found: { name: string; lines: string[] }[] = [];
  let comment: string[] = [];
  for (const line of text.split("\n")) {
    const name = BEGINS.exec(line)?.[1];
    if (name !== undefined) {
      found.push({ name, lines: [...comment, line] });
      comment = [];
    } else if (line.startsWith("/**") || line.startsWith(" *")) comment.push(line);
    else if (/^(?:import|export (?:type )?[*{]|\/\/|$)/.test(line)) comment = [];
    else found.at(-1)?.lines.push(line);
  }
  return found.map(({ name, lines }) => ({ name, text: lines.join("\n") }));
}

function emitted(name: string): Declaration[] {
  // The compiler indents by four.
  return declarationsIn(readFileSync(join(SDK, `${name}.d.ts`), "utf8").replaceAll("    ", "  "));
}

/** Every name that the entries give away. */
function exportedNames(): string[] {
  const handles = readFileSync(join(SDK, "exports.d.ts"), "utf8").matchAll(/export (?:type )?\{([^}]*)\}/g);
  const named = [...handles].flatMap(([, list = ""]) => list.split(",").map((name) => name.trim().replace(/^type /, "")));
  const types = typeFiles().flatMap((name) => emitted(name).map((declaration) => declaration.name));
  return [...named.filter((name) => name !== ""), ...types];
}

function typeFiles(): string[] {
  return readdirSync(join(SDK, "types"))
    .filter((name) => name !== "types.d.ts")
    .map((name) => `types/${name.replace(".d.ts", "")}`);
}

const HANDLES = [
  "vivarium",
  "sandbox",
  "execution",
  "files",
  "port",
  "code",
  "desktop",
  "experiment",
  "promotion",
  "task",
  "approvals",
  "connection",
  "error",
];

/** Those that are named, and what these name in turn. */
function reachable(all: readonly Declaration[], names: readonly string[]): Declaration[] {
  const byName = new Map(all.map((declaration) => [declaration.name, declaration] as const));
  const wanted = new Set<string>();
  const left = [...names];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (wanted.has(next)) continue;
    wanted.add(next);
    const texts = all.filter(({ name }) => name === next).map(({ text }) => text.replaceAll(/\/\*\*.*?\*\//gs, ""));
    left.push(...texts.flatMap((text) => [...text.matchAll(/\b[A-Z]\w*/g)].map(([name]) => name)).filter((name) => byName.has(name)));
  }
  return all.filter(({ name }) => wanted.has(name));
}

/** Refuses two things of one name: in one file they would be one. VivariumError is a type and a value. */
function refuseDoubles(declarations: readonly Declaration[]): void {
  const names = declarations.map(({ name }) => name).filter((name) => name !== "VivariumError");
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) throw new Error(`the SDK declares ${double} twice`);
}

function entry(declarations: readonly Declaration[]): string {
  return [
    'import { VivariumClient } from "./shared.js";',
    'export type * from "./shared.js";',
    'export { VivariumError } from "./shared.js";',
    ...declarations.map(({ text }) => exported(text)),
    "",
  ].join("\n\n");
}

function exported(text: string): string {
  return text.replace(/^(?!\/\*\*| \*)(?:export )?/m, "export ");
}

/** The files by name. */
export function renderDeclarations(): Map<string, string> {
  rmSync(EMITTED, { recursive: true, force: true });
  execFileSync(join(root, "node_modules", ".bin", "tsc"), ["-p", join(root, "scripts", "tsconfig.sdk.json")], { stdio: ["ignore", 2, 2] });
  const all = [...HANDLES, ...typeFiles()].flatMap(emitted);
  const shared = reachable(all, [...exportedNames(), "VivariumClient"]);
  refuseDoubles(shared);
  const head = '/// <reference lib="esnext.disposable" />\n';
  return new Map([
    ["shared.d.ts", `${head}${shared.map(({ text }) => exported(text)).join("\n\n")}\n`],
    ["index.d.ts", entry(reachable([...emitted("node"), ...emitted("node-platform")], ["Vivarium"]))],
    ["client.d.ts", entry(reachable(emitted("browser"), ["Vivarium"]))],
  ]);
}

export function writeDeclarations(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of renderDeclarations()) writeFileSync(join(folder, name), text);
}
