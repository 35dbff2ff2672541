/** Who may import whom. A room without a place here fails: give it one that follows docs/ARCHITECTURE.md. */
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { projectFiles, root, type ProjectFile } from "./files.ts";

/** The floors of src/, from the top: a file imports from floors below its own. */
const FLOORS = ["interfaces", "work", "sandbox", "rules", "machine", "base"];

/** Rooms by floor, and which rooms of the same floor each may import. */
const WITHIN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  interfaces: {
    api: ["operations"],
    cli: ["client", "mcp"],
    client: [],
    front: ["api", "cli", "client", "operations"],
    gateway: [],
    mcp: ["client"],
    operations: [],
    sdk: ["client"],
  },
  work: {
    agents: ["checks", "conversations", "guardian"],
    automation: ["checks", "experiments", "promotion"],
    checks: [],
    conversations: [],
    experiments: ["agents", "checks"],
    guardian: [],
    jobs: [],
    notifications: [],
    promotion: ["checks", "refresh"],
    refresh: [],
    reviews: ["agents", "checks", "experiments"],
  },
  sandbox: {
    changes: ["projects", "shared"],
    commands: ["shared"],
    desktop: ["commands", "shared"],
    ending: ["commands", "permissions", "projects", "shared"],
    files: [],
    notebook: ["commands", "shared"],
    permissions: ["projects", "shared"],
    projects: ["shared"],
    shared: [],
    snapshots: ["ending", "permissions", "projects", "shared", "start"],
    start: ["commands", "ending", "permissions", "projects", "shared"],
  },
  rules: {
    actions: ["approvals", "audit"],
    approvals: ["audit"],
    audit: [],
    effects: ["actions", "approvals", "audit", "network"],
    models: ["approvals", "audit", "secrets"],
    network: [],
    secrets: ["approvals", "audit", "network"],
    sessions: ["audit"],
  },
  machine: { capture: ["volumes"], drivers: ["capture", "volumes"], merge: ["volumes"], volumes: [] },
  base: {
    config: ["host", "policy", "schema"],
    events: ["schema", "store"],
    host: ["schema"],
    policy: ["schema"],
    schema: [],
    store: ["schema"],
    wire: ["schema"],
  },
};

/** Rooms that are programs of their own beside the server, and the rooms that they share with it. */
const BESIDE_THE_SERVER: Readonly<Record<string, readonly string[]>> = {
  client: ["schema", "wire"],
  sdk: ["client", "config", "schema"],
  cli: ["client", "config", "host", "mcp", "schema"],
  mcp: ["client", "schema"],
};

/** Packages and system modules that only these folders may import. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  kysely: ["store"],
  "node:sqlite": ["store"],
  // The command line starts the server, and nothing else; the SDK starts the command line.
  "node:child_process": ["host", "cli", "sdk"],
  "node:net": ["host", "wire", "drivers", "api", "client", "cli", "network", "server.ts"],
  hono: ["api"],
  "@hono/node-server": ["api"],
  "jsonc-parser": ["config"],
  nodemailer: ["notifications"],
  "modern-tar": ["sandbox", "client", "mcp"],
  "@modelcontextprotocol/server": ["mcp"],
  ws: ["api", "client", "notebook", "wire"],
};

/** Folders whose subfolders are ways to do one thing: they know the port, not each other. */
const PORTS = ["store", "volumes", "drivers"];

interface Import {
  readonly file: ProjectFile;
  readonly from: Place;
  readonly target: string;
}

interface Place {
  /** Empty for a file in src/ itself. */
  readonly floor: string;
  /** Empty for a file in a floor's own folder. */
  readonly room: string;
}

const sources = projectFiles(/^src\/.*\.ts$/).filter(({ path }) => !path.endsWith(".test.ts"));
const imports = sources.flatMap(importsOf);
const inside = imports.filter(({ target }) => target.startsWith("src/")).map((one) => ({ ...one, to: placeOf(one.target) }));

function importsOf(file: ProjectFile): Import[] {
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']/g;
  return [...file.text.matchAll(pattern)].map(([, name = ""]) => {
    const target = name.startsWith(".") ? relative(root, join(root, dirname(file.path), name)) : name;
    return { file, from: placeOf(file.path), target };
  });
}

/** `src/machine/volumes/btrfs/x.ts` -> machine, volumes; `src/sandbox/x.ts` -> sandbox; `src/server.ts` -> neither. */
function placeOf(path: string): Place {
  const [, ...folders] = path.split("/").slice(0, -1);
  return { floor: folders[0] ?? "", room: folders[1] ?? "" };
}

/** The floor's own files start its rooms, and may use all of them; files of src/ itself start the floors. */
function isAllowed({ from, to }: { from: Place; to: Place }): boolean {
  if (from.floor === "") return true;
  const beside = BESIDE_THE_SERVER[from.room];
  if (beside !== undefined) return to.room === from.room || beside.includes(to.room);
  if (from.floor !== to.floor) return to.floor !== "" && FLOORS.indexOf(from.floor) < FLOORS.indexOf(to.floor);
  return from.room === to.room || from.room === "" || WITHIN[from.floor]?.[from.room]?.includes(to.room) === true;
}

function told(broken: readonly Import[]): string[] {
  return broken.map(({ file, target }) => `${file.path} imports ${target}`);
}

describe("the floors", () => {
  test("are the folders of src, and have a row for each of their rooms", () => {
    const places = sources.map(({ path }) => placeOf(path));
    const unknown = places.filter(
      ({ floor, room }) => floor !== "" && (!FLOORS.includes(floor) || (room !== "" && WITHIN[floor]?.[room] === undefined)),
    );
    expect(unknown).toEqual([]);
  });

  test("are imported from above only, and rooms beside each other by their table", () => {
    expect(told(inside.filter((one) => !isAllowed(one)))).toEqual([]);
  });

  test("have no permission that no import uses", () => {
    const used = new Set(inside.map(({ from, to }) => `${from.room} -> ${to.room}`));
    const given = [...Object.values(WITHIN).flatMap((rooms) => Object.entries(rooms)), ...Object.entries(BESIDE_THE_SERVER)];
    const unused = given.flatMap(([room, may]) => may.map((other) => `${room} -> ${other}`)).filter((one) => !used.has(one));
    expect(unused).toEqual([]);
  });

  test("have no circle of rooms", () => {
    const circles = Object.values(WITHIN).flatMap((rooms) =>
      Object.keys(rooms).filter((room) => rooms[room]?.some((next) => reaches(rooms, next, room, new Set()))),
    );
    expect(circles).toEqual([]);
  });

  test("keep imports inside src", () => {
    expect(told(imports.filter(({ target }) => /^(\.\.|test|scripts|bench|web)\b/.test(target)))).toEqual([]);
  });

  test("let the schemas use zod alone", () => {
    const foreign = imports.filter(
      ({ from, target }) => from.room === "schema" && target !== "zod" && !target.startsWith("src/base/schema/"),
    );
    expect(told(foreign)).toEqual([]);
  });
});

describe("packages and ports", () => {
  test("keep packages and system modules in the rooms that are their door", () => {
    const broken = imports.filter(({ file, from, target }) => {
      const door = Object.entries(ONLY_IN).find(([name]) => target === name || target.startsWith(`${name}/`));
      return door !== undefined && !door[1].some((place) => place === from.room || place === from.floor || file.path === `src/${place}`);
    });
    expect(told(broken)).toEqual([]);
  });

  test("keep the ways behind one port apart", () => {
    const broken = inside.filter(({ file, from, to, target }) => {
      const own = file.path.split("/");
      const other = target.split("/");
      return PORTS.includes(from.room) && to.room === from.room && own.length > 4 && other.length > 4 && own[3] !== other[3];
    });
    expect(told(broken)).toEqual([]);
  });
});

function reaches(rooms: Readonly<Record<string, readonly string[]>>, from: string, goal: string, seen: Set<string>): boolean {
  if (from === goal) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return (rooms[from] ?? []).some((next) => reaches(rooms, next, goal, seen));
}
