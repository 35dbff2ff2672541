/** How JupyterLab's front end is built: its packages from npm, by the bundler that builds the dashboard. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const here = import.meta.dirname;
/** What `package.json` lists, a name and the module in it that is meant, if not the main one. */
type Listed = Record<string, string>;
const { jupyterlab } = readJson(join(here, "package.json")) as { jupyterlab: { extensions: Listed; mimeExtensions: Listed } };
const LIST = "virtual:extensions";

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** JavaScript that imports them, each with its styles, and exports them as a list. */
function importsOf(list: string, names: Listed): string {
  const lines = Object.entries(names).map(([name, module], at) => {
    const { styleModule } = readJson(join(here, "node_modules", name, "package.json")) as { styleModule?: string };
    const style = styleModule === undefined ? "" : `import ${JSON.stringify(`${name}/${styleModule}`)};\n`;
    return `${style}import * as ${list}${at} from ${JSON.stringify(module === "" ? name : `${name}/${module}`)};`;
  });
  return `${lines.join("\n")}\nexport const ${list} = [${lines.map((_, at) => `${list}${at}`).join(", ")}];\n`;
}

const listed: Plugin = {
  name: "the extensions that are listed",
  resolveId: (source) => (source === LIST ? `\0${LIST}` : null),
  load: (id) =>
    id === `\0${LIST}` ? importsOf("extensions", jupyterlab.extensions) + importsOf("mimeExtensions", jupyterlab.mimeExtensions) : null,
};

/** Their scripts import pictures, and styles with `.raw` in the name, as text. */
const asText: Plugin = {
  name: "files as text",
  enforce: "pre",
  resolveId: (source, importer) =>
    source.endsWith(".raw.css") && importer !== undefined ? `${resolve(dirname(importer), source)}.js` : null,
  load(id) {
    const path = id.endsWith(".raw.css.js") ? id.slice(0, -".js".length) : id;
    return /\.(?:svg|raw\.css)$/.test(path) ? `export default ${JSON.stringify(readFileSync(path, "utf8"))};` : null;
  },
};

export default defineConfig({
  plugins: [listed, asText],
  root: here,
  base: "/static/lab/",
  // Their styles name packages, and their scripts Node's variables, as webpack wants it.
  resolve: { alias: [{ find: /^~(?=[a-z@])/, replacement: "" }] },
  define: { "process.env": "{}", global: "globalThis", __dirname: JSON.stringify("/") },
  build: {
    outDir: "../build/lab/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 4_000,
    rolldownOptions: {
      onLog: (level, log, report) => {
        // Known of these packages: they evaluate the JavaScript that notebooks show, which is what they are for.
        if (log.code !== "EVAL" && log.code !== "MODULE_LEVEL_DIRECTIVE") report(level, log);
      },
    },
  },
});
