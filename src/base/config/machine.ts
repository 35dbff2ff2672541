/** Where the program's own files are. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Whether this file is a source, in src/base/config/, or became part of a program in dist/program/. */
const isSource = import.meta.url.endsWith(".ts");

/** The package's folder. */
const ROOT = fileURLToPath(new URL(isSource ? "../../.." : "../..", import.meta.url));

/** The server's program: source runs source, and what was built what was built with it. */
export const SERVER = fileURLToPath(new URL(isSource ? "../../server-main.ts" : "server.js", import.meta.url));

/** The command line's program. */
export const VIV = join(ROOT, "bin", "viv");

/** The cell: VIV_CELL, whatever is there, or else the one built here or the one the package carries. */
export function findCell(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const given = env["VIV_CELL"];
  if (given) return given;
  const candidates = [join(ROOT, "build", "cell"), join(ROOT, "dist", "native", `${process.platform}-${process.arch}`, "cell")];
  return candidates.find((path) => existsSync(path));
}

/** The front, as the cell is found; undefined in a copy without one. */
export function findFront(): string | undefined {
  const candidates = [join(ROOT, "build", "front"), join(ROOT, "dist", "native", `${process.platform}-${process.arch}`, "front")];
  return candidates.find((path) => existsSync(path));
}

/** What Vite made of web/: built here, or carried by the package. */
export function findPages(): string | undefined {
  return [join(ROOT, "build", "web"), join(ROOT, "dist", "web")].find((path) => existsSync(path));
}

/** JupyterLab's front end, made of lab/: built here, or carried by the package. */
export function findLab(): string | undefined {
  return [join(ROOT, "build", "lab"), join(ROOT, "dist", "lab")].find((path) => existsSync(join(path, "about.json")));
}

export function readVersion(): string {
  const text = readFileSync(join(ROOT, "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** A file of integrations/, which agents inside get. */
export function readIntegration(path: string): string {
  return readFileSync(join(ROOT, "integrations", path), "utf8");
}
