/** Builds JupyterLab's front end into build/lab: pages, settings and themes, with the program that serves them inside a sandbox. */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";

const root = join(import.meta.dirname, "..");
const source = join(root, "lab");
const target = join(root, "build", "lab");

interface Package {
  readonly version: string;
  readonly jupyterlab?: { readonly schemaDir?: string; readonly themePath?: string };
}

function packageOf(name: string): Package {
  return JSON.parse(readFileSync(join(source, "node_modules", name, "package.json"), "utf8")) as Package;
}

/** The forms of an extension's settings, which the server inside gives to the page. */
function copySettings(name: string, folder: string): void {
  const from = join(source, "node_modules", name);
  const to = join(target, "schemas", name);
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(join(from, folder)).filter((entry) => entry.endsWith(".json")))
    cpSync(join(from, folder, file), join(to, file));
  cpSync(join(from, "package.json"), join(to, "package.json.orig"));
}

/** A theme is one file of styles, which the page asks for by name. */
function writeTheme(name: string): void {
  const style = join(source, "node_modules", name, "style");
  const [variables, theme] = ["variables.css", "theme.css"].map((file) => readFileSync(join(style, file), "utf8")) as [string, string];
  const joined = theme.replace(/^@import '\.\/variables\.css';$/m, () => variables);
  if (joined === theme) throw new Error(`The style of ${name} has another form than this program knows.`);
  mkdirSync(join(target, "themes", name), { recursive: true });
  writeFileSync(join(target, "themes", name, "index.css"), joined);
}

/** Fonts as pictures are for browsers of 2012. */
function isOldFont(path: string): boolean {
  return /\/fa-[a-z]+-\d+-[^/]*\.(?:svg|eot|ttf)$/.test(path);
}

function digestOf(folder: string): string {
  const hash = createHash("sha256");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of files.map((entry) => join(entry.parentPath, entry.name)).toSorted())
    hash.update(path.slice(folder.length)).update(readFileSync(path));
  return hash.digest("hex").slice(0, 16);
}

rmSync(target, { recursive: true, force: true });
await build({ configFile: join(source, "vite.config.ts"), logLevel: "warn" });
const { jupyterlab } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as {
  jupyterlab: { extensions: Record<string, string>; mimeExtensions: Record<string, string> };
};
for (const name of Object.keys({ ...jupyterlab.extensions, ...jupyterlab.mimeExtensions })) {
  const { schemaDir, themePath } = packageOf(name).jupyterlab ?? {};
  if (schemaDir !== undefined && existsSync(join(source, "node_modules", name, schemaDir))) copySettings(name, schemaDir);
  if (themePath !== undefined) writeTheme(name);
}
for (const file of readdirSync(join(target, "static", "assets")))
  if (isOldFont(join(target, "static", "assets", file))) rmSync(join(target, "static", "assets", file));
cpSync(join(source, "vivarium_lab.py"), join(target, "vivarium_lab.py"));
// Comes last: a folder without it is not whole.
writeFileSync(
  join(target, "about.json"),
  JSON.stringify({ version: packageOf("@jupyterlab/application").version, digest: digestOf(target) }),
);
