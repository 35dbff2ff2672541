/** The program in a few files: its modules and those of its dependencies, of which each would be looked up at every start. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown, type Plugin } from "rolldown";

const root = join(import.meta.dirname, "..");
/** What so many commands need is one file that all of them load. */
const SHARED_BY = 8;

/** Writes `cli.js` and `server.js`, with the parts they load later, into a folder two levels below the package's. */
export async function bundle(folder: string): Promise<void> {
  const modules = [
    ...(await write(folder, { cli: join(root, "src/interfaces/cli/main.ts") })),
    ...(await write(folder, { server: join(root, "src/server-main.ts") })),
  ];
  writeFileSync(join(folder, "LICENSES.txt"), licensesOf(modules));
}

/** Which modules became part of it. */
async function write(folder: string, input: Record<string, string>): Promise<string[]> {
  const build = await rolldown({
    input,
    platform: "node",
    cwd: root,
    // Of packages that come in two forms, modules: the other form asks for its own files while it runs.
    resolve: { mainFields: ["module", "main"] },
    plugins: [byName],
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
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
      codeSplitting: { groups: [{ name: "common", minShareCount: SHARED_BY }] },
    });
    return output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
  } finally {
    await build.close();
  }
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
