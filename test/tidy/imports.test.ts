/** Who may import whom. A folder of src/ without a row here fails: give it one that follows docs/ARCHITECTURE.md. */
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { projectFiles, root, type ProjectFile } from "./files.ts";

/** Folder of src/ (or file in src/ itself) -> the folders it may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  schema: [],
  config: ["schema", "host", "policy"],
  host: ["schema"],
  policy: ["schema"],
  wire: ["schema"],
  client: ["schema", "wire"],
  volumes: ["schema", "host"],
  capture: ["schema", "host", "config", "volumes"],
  drivers: ["schema", "host", "capture", "volumes"],
  store: ["schema", "capture", "volumes", "drivers"],
  merge: ["schema", "host", "volumes"],
  events: ["schema", "store"],
  audit: ["schema", "store"],
  approvals: ["schema", "store", "audit"],
  actions: ["schema", "approvals", "audit", "config", "policy", "store"],
  network: ["schema", "host", "store", "events", "policy"],
  sandbox: ["schema", "audit", "config", "host", "store", "events", "policy", "capture", "volumes", "drivers", "network", "merge"],
  effects: ["schema", "actions", "approvals", "audit", "config", "host", "network", "policy", "store"],
  secrets: ["schema", "approvals", "audit", "capture", "store", "network"],
  models: ["schema", "approvals", "audit", "host", "network", "store", "secrets"],
  experiments: ["schema", "audit", "config", "host", "store", "events", "capture", "volumes", "drivers", "merge", "sandbox"],
  promotion: ["schema", "audit", "config", "host", "store", "events", "capture", "volumes", "drivers", "merge", "sandbox", "experiments"],
  gateway: ["schema", "actions", "audit", "approvals", "host", "store", "capture", "volumes", "drivers", "sandbox"],
  operations: [
    "schema",
    "actions",
    "audit",
    "approvals",
    "config",
    "host",
    "store",
    "events",
    "policy",
    "capture",
    "volumes",
    "drivers",
    "network",
    "secrets",
    "merge",
    "sandbox",
    "experiments",
    "promotion",
  ],
  api: ["schema", "config", "events", "operations", "wire"],
  mcp: ["schema", "operations"],
  cli: ["schema", "config", "host", "client"],
  "server-main.ts": ["schema", "config", "host", "server.ts"],
  "server-backends.ts": ["schema", "config", "host", "capture", "volumes", "drivers", "sandbox"],
  "server.ts": [
    "server-backends.ts",
    "schema",
    "actions",
    "audit",
    "approvals",
    "config",
    "host",
    "store",
    "events",
    "policy",
    "drivers",
    "network",
    "secrets",
    "merge",
    "sandbox",
    "experiments",
    "promotion",
    "gateway",
    "models",
    "effects",
    "operations",
    "api",
  ],
};

/** Packages and system modules that only these folders may import. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  kysely: ["store"],
  "node:sqlite": ["store"],
  // The command line starts the server, and nothing else.
  "node:child_process": ["host", "cli"],
  "node:net": ["host", "drivers", "api", "client", "cli", "network", "server.ts"],
  hono: ["api"],
  "@hono/node-server": ["api"],
  "jsonc-parser": ["config"],
  "modern-tar": ["sandbox", "cli"],
  ws: ["api", "client", "cli", "wire"],
};

/** Folders whose subfolders are ways to do one thing: they know the port, not each other. */
const PORTS = ["store", "volumes", "drivers"];

interface Import {
  readonly file: ProjectFile;
  readonly from: string;
  readonly target: string;
}

const sources = projectFiles(/^src\/.*\.ts$/).filter(({ path }) => !path.endsWith(".test.ts"));
const imports = sources.flatMap(importsOf);

function importsOf(file: ProjectFile): Import[] {
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']/g;
  return [...file.text.matchAll(pattern)].map(([, name = ""]) => {
    const target = name.startsWith(".") ? relative(root, join(root, dirname(file.path), name)) : name;
    return { file, from: roomOf(file.path), target };
  });
}

/** `src/volumes/btrfs/x.ts` -> `volumes`; `src/server.ts` -> `server.ts`. */
function roomOf(path: string): string {
  return path.split("/")[1] ?? path;
}

function isRelative({ target }: Import): boolean {
  return target.startsWith("src/");
}

describe("the import table", () => {
  test("has a row for every folder of src", () => {
    const rooms = new Set(sources.map(({ path }) => roomOf(path)));
    expect([...rooms].filter((room) => !(room in MAY_IMPORT))).toEqual([]);
  });

  test("is kept by every import between folders", () => {
    const broken = imports
      .filter(isRelative)
      .filter(({ from, target }) => roomOf(target) !== from && !MAY_IMPORT[from]?.includes(roomOf(target)))
      .map(({ file, target }) => `${file.path} imports ${target}`);
    expect(broken).toEqual([]);
  });

  test("keeps imports inside src", () => {
    const outside = imports.filter(({ target }) => /^(\.\.|test|scripts|bench|web)\b/.test(target));
    expect(outside.map(({ file, target }) => `${file.path} imports ${target}`)).toEqual([]);
  });

  test("has no circle", () => {
    const ends = (room: string): boolean => (MAY_IMPORT[room] ?? []).every((next) => !reaches(next, room, new Set()));
    expect(Object.keys(MAY_IMPORT).filter((room) => !ends(room))).toEqual([]);
  });

  test("lets the schemas use zod alone", () => {
    const foreign = imports.filter(({ from, target }) => from === "schema" && target !== "zod" && !target.startsWith("src/schema/"));
    expect(foreign.map(({ file, target }) => `${file.path} imports ${target}`)).toEqual([]);
  });

  test("keeps packages and system modules in the folders that are their door", () => {
    const broken = imports
      .filter(({ from, target }) => {
        const door = Object.entries(ONLY_IN).find(([name]) => target === name || target.startsWith(`${name}/`));
        return door !== undefined && !door[1].includes(from);
      })
      .map(({ file, target }) => `${file.path} imports ${target}`);
    expect(broken).toEqual([]);
  });

  test("keeps the ways behind one port apart", () => {
    const broken = imports
      .filter(isRelative)
      .filter(({ file, from, target }) => {
        const own = file.path.split("/");
        const other = target.split("/");
        return PORTS.includes(from) && roomOf(target) === from && own.length > 3 && other.length > 3 && own[2] !== other[2];
      })
      .map(({ file, target }) => `${file.path} imports ${target}`);
    expect(broken).toEqual([]);
  });
});

function reaches(from: string, goal: string, seen: Set<string>): boolean {
  if (from === goal) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return (MAY_IMPORT[from] ?? []).some((next) => reaches(next, goal, seen));
}
