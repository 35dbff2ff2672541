/** How the pages are built. `npm run setup` does it; `npm run web` shows them as they are edited, against a server that runs. */
import { join } from "node:path";
import { defineConfig, type Plugin } from "vite";

/** What the diff component could load, and never does here: other themes, and other ways to find what to colour. */
const UNUSED = /^@shikijs\/themes\/|^@pierre\/theme\/|^shiki\/(?:wasm|engine\/oniguruma)$|\/backends\/highlights\.js$/;
const unused: Plugin = {
  name: "without what is never loaded",
  enforce: "pre",
  resolveId: (source, importer) => (UNUSED.test(source) && /pierre|shiki/.test(importer ?? "") ? "\0unused" : null),
  load: (id) => (id === "\0unused" ? "export default {};" : null),
};

export default defineConfig({
  plugins: [unused],
  resolve: { alias: { "shiki/langs": join(import.meta.dirname, "src/diff/languages.ts") } },
  root: import.meta.dirname,
  build: {
    outDir: "../build/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // Source maps would be four fifths of the package.
    sourcemap: false,
    reportCompressedSize: false,
    // What the browser loads beside a page is the page's own choice.
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      onLog: (level, log, report) => {
        // Marks for servers that render React, which is not done here.
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") report(level, log);
      },
    },
  },
});
