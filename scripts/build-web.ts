/** Builds the dashboard into build/web: what Vite makes of web/, each file as gzip and as Brotli, which is all that the server sends. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "vite";

const root = join(import.meta.dirname, "..");
const folder = join(root, "build", "web");
/** Two steps below the best, which takes six times as long for two hundredths. */
const BROTLI_QUALITY = 9;

async function compress(path: string): Promise<void> {
  const content = readFileSync(path);
  const [small, smaller] = await Promise.all([
    promisify(gzip)(content, { level: 9 }),
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  ]);
  writeFileSync(`${path}.gz`, small);
  writeFileSync(`${path}.br`, smaller);
  rmSync(path);
}

await build({ configFile: join(root, "web", "vite.config.ts"), logLevel: "warn" });
const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
// The server looks at the first page to see whether there is a new build: it comes last.
const paths = files.map((entry) => join(entry.parentPath, entry.name)).toSorted((one) => (one.endsWith("index.html") ? 1 : -1));
await Promise.all(paths.filter((path) => !path.endsWith("index.html")).map(compress));
await compress(join(folder, "index.html"));
