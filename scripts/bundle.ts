/** The program in a few files: its modules and those of its dependencies, of which each would be looked up at every start. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

const root = join(import.meta.dirname, "..");

/** Writes `cli.js`, `server.js` and what they share into a folder two levels below the package's. */
export async function bundle(folder: string): Promise<void> {
  const input = { cli: join(root, "src/cli/main.ts"), server: join(root, "src/server-main.ts") };
  // Of packages that come in two forms, modules: the other form asks for its own files while it runs.
  const build = await rolldown({ input, platform: "node", cwd: root, resolve: { mainFields: ["module", "main"] } });
  try {
    const { output } = await build.write({ dir: folder, format: "esm", entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" });
    const modules = output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
    writeFileSync(join(folder, "LICENSES.txt"), licensesOf(modules));
  } finally {
    await build.close();
  }
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
