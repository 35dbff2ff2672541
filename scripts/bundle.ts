/** The program in a few files: its modules and those of its dependencies, of which each would be looked up at every start. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown, type Plugin } from "rolldown";

const root = join(import.meta.dirname, "..");
/** What so many commands need is one file that all of them load. */
const SHARED_BY = 8;

/**
 * The parts that the server is read in, from the ground up. Of one file with all of it the engine would hold the whole tree while it
 * compiles, and the C library keeps that memory: 4 MiB for as long as the server runs. Imports go down only, so no part needs one that
 * comes after it.
 */
const FLOORS = [
  ["zod", /node_modules\/zod\//],
  ["packages", /node_modules\//],
  ["schema", /src\/base\/schema\//],
  ...["base", "machine", "rules", "sandbox", "work"].map((floor) => [floor, new RegExp(`src/${floor}/`)] as const),
] as const;

/** Writes `cli.js` and `server.js`, with the parts they load later, into a folder two levels below the package's. */
export async function bundle(folder: string): Promise<void> {
  const start = new Set<string>();
  const floors = new Set<string>();
  const parts = [
    ...(await write(folder, { cli: join(root, "src/interfaces/cli/main.ts") }, { plugins: [webSocketsApart, startOf(start)], start })),
    ...(await write(folder, { [WEB_SOCKETS]: join(root, "node_modules/ws/wrapper.mjs") })),
    ...(await write(folder, { server: join(root, "src/server-main.ts") }, { plugins: [startOf(floors)], floors })),
  ];
  writeFileSync(join(folder, "LICENSES.txt"), licensesOf(parts.flatMap(({ modules }) => modules)));
  // The names of parts change with their content.
  const written = new Set([...parts.map(({ name }) => name), "LICENSES.txt"]);
  for (const name of readdirSync(folder)) if (!written.has(name)) rmSync(join(folder, name), { recursive: true });
}

/** Writes the entries of the SDK, `index.js` for Node and `client.js` for browsers, into a folder two levels below the package's. */
export async function bundleSdk(folder: string): Promise<void> {
  const parts = [
    ...(await write(folder, { index: join(root, "src/interfaces/sdk/node.ts") })),
    ...(await write(folder, { client: join(root, "src/interfaces/sdk/browser.ts") }, { platform: "browser" })),
  ];
  writeFileSync(join(folder, "LICENSES.txt"), licensesOf(parts.flatMap(({ modules }) => modules)));
}

interface Part {
  /** Of its file. */
  readonly name: string;
  readonly modules: readonly string[];
}

interface WriteOptions {
  readonly plugins?: readonly Plugin[];
  readonly platform?: "node" | "browser";
  /** Modules that are one part, whatever else needs them. */
  readonly start?: ReadonlySet<string>;
  /** Modules that are one part for each floor. */
  readonly floors?: ReadonlySet<string>;
}

async function write(folder: string, input: Record<string, string>, options: WriteOptions = {}): Promise<Part[]> {
  const { plugins = [], platform = "node", start, floors } = options;
  const build = await rolldown({
    input,
    platform,
    cwd: root,
    // Of packages that come in two forms, modules: the other form asks for its own files while it runs.
    resolve: { mainFields: ["module", "main"] },
    plugins: [...(platform === "node" ? [byName] : []), inAscii, ...plugins],
    treeshake: { propertyReadSideEffects: false },
    onLog: (level, log, report) => {
      // A command that another one takes something from is loaded with that one.
      if (log.code !== "INEFFECTIVE_DYNAMIC_IMPORT") report(level, log);
    },
  });
  try {
    const { output } = await build.write({
      dir: folder,
      format: "esm",
      // A sixth of the text, which is read at every start.
      comments: false,
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
      codeSplitting: {
        groups: [
          // A part of its own, or the bundler puts what all parts need into it, and it is loaded at every start, with TLS and more.
          { name: "websocket", test: /node_modules\/ws\//, priority: 1 },
          { name: "start", test: (id) => start?.has(id) === true, priority: 1 },
          { name: "common", minShareCount: SHARED_BY },
          ...FLOORS.map(([name, place]) => ({ name, test: (id: string) => floors?.has(id) === true && place.test(id) })),
        ],
      },
    });
    return output.map((part) => ({ name: part.fileName, modules: part.type === "chunk" ? part.moduleIds : [] }));
  } finally {
    await build.close();
  }
}

/** Node itself has loaded these when a program starts. */
const LOADED_ALREADY = ["fs", "path", "url"].map((name) => `\0node:${name}`);

/**
 * Fills a set with the modules that every start loads: what the entry imports, but for what is imported later. In one part with the
 * client and Node's HTTP, those of the command line would make its smallest command take half as long again.
 */
function startOf(found: Set<string>): Plugin {
  return {
    name: "what every start loads",
    buildEnd() {
      const add = (id: string): void => {
        if (found.has(id)) return;
        found.add(id);
        this.getModuleInfo(id)?.importedIds.forEach(add);
      };
      for (const id of this.getModuleIds()) if (LOADED_ALREADY.includes(id) || this.getModuleInfo(id)?.isEntry === true) add(id);
    },
  };
}

const BUILT_IN = "\0node:";

/** Node reads every export of a built-in module that is imported, which loads much that is not used; this reads those in use. */
const byName: Plugin = {
  name: "built-in modules by name",
  // What the bundler itself adds needs node:module before anything else is there.
  resolveId: (source) => (/^node:(?!module$)/.test(source) ? { id: `\0${source}`, moduleSideEffects: false } : null),
  load(id) {
    if (!id.startsWith(BUILT_IN)) return null;
    const name = id.slice(1);
    const names = Object.keys(process.getBuiltinModule(name) ?? {}).filter((each) => /^[a-z_$][\w$]*$/i.test(each) && each !== "default");
    return [
      `const found = process.getBuiltinModule(${JSON.stringify(name)});`,
      "export default found;",
      ...names.map((each) => `export const ${each} = found.${each};`),
    ].join("\n");
  },
};

const WEB_SOCKETS = "ws";

/**
 * In one build with the commands, the bundler's own helpers would come to lie in the part with WebSockets: every command would
 * load it, and with it Node's HTTPS and TLS, which takes as long as all the rest.
 */
const webSocketsApart: Plugin = {
  name: "WebSockets apart",
  resolveId: (source) => (source === "ws" ? { id: `./${WEB_SOCKETS}.js`, external: true } : null),
};

/** One other character would make the engine keep the whole text with two bytes for each: more memory, and more to read at every start. */
const inAscii: Plugin = {
  name: "text in ASCII",
  generateBundle(_options, parts) {
    for (const part of Object.values(parts)) if (part.type === "chunk") part.code = part.code.replaceAll(/[^\0-\x7f]/g, escaped);
  },
};

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The terms of every package that modules come from. */
function licensesOf(modules: readonly string[]): string {
  const names = new Set(modules.flatMap((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
  return [...names].toSorted().map(licenseOf).join("\n");
}

function licenseOf(name: string): string {
  const folder = join(root, "node_modules", name);
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} comes without its terms, so it can't be part of the package`);
  return `${name}\n${"=".repeat(name.length)}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
