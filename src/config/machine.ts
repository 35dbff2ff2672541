/** Where the program's own files are. */
import { existsSync } from "node:fs";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { VivError } from "../schema/errors.ts";

/** The package's folder: above src/ in a checkout, above dist/ in an installed package. */
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The cell: VIV_CELL, the one built here, or the one the package carries. */
export function findCell(env: Readonly<Record<string, string | undefined>>): string {
  const given = env["VIV_CELL"];
  const candidates = [...(given ? [given] : []), join(ROOT, "build", "cell"), join(ROOT, "dist", "native", `${process.platform}-${process.arch}`, "cell")];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new VivError("cell_missing", "The native helper of Vivarium is not built.");
  return found;
}

export function readVersion(): string {
  const text = readFileSync(join(ROOT, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
