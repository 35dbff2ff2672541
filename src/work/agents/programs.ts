/** Where the program of an agent is: installed by this server, on the caller's PATH, among npm's own, or in the project. */
import { accessSync, constants, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { ProgramSource } from "../../base/schema/agent-contracts.ts";
import { npmPrefix } from "./npm-prefix.ts";

export interface ProgramPlaces {
  /** The program of an install of ours, if there is one. */
  readonly installed: string | undefined;
  /** The caller's. */
  readonly path: string | undefined;
  readonly home: string;
  readonly project: string | undefined;
}

export interface FoundProgram {
  readonly path: string;
  readonly from: ProgramSource;
}

/** As a sandbox sees it, too: it is a clone of this machine. */
export function findProgram(name: string, { installed, path, home, project }: ProgramPlaces): FoundProgram | undefined {
  // The user's config may name it so.
  if (isAbsolute(name)) return isProgram(name) ? { path: name, from: "path" } : undefined;
  for (const found of candidates(name, { installed, path, home, project }))
    if (isProgram(found.path) && (found.from === "installed" || isSeenInside(found.path, project))) return found;
  return undefined;
}

/** One after the other: npm's settings are read only for a program that is not on the PATH. */
function* candidates(name: string, { installed, path, home, project }: ProgramPlaces): Generator<FoundProgram> {
  if (installed !== undefined) yield { path: installed, from: "installed" };
  for (const folder of (path ?? "").split(":").filter((each) => isAbsolute(each))) yield { path: join(folder, name), from: "path" };
  const prefix = npmPrefix({ path, home });
  if (prefix !== undefined) yield { path: join(prefix, "bin", name), from: "npm" };
  if (project !== undefined) yield { path: join(project, "node_modules/.bin", name), from: "project" };
}

/** A sandbox has a /tmp of its own; of the real one it sees a project that lies there. */
function isSeenInside(path: string, project: string | undefined): boolean {
  return !path.startsWith("/tmp/") || (project !== undefined && path.startsWith(`${project}/`));
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** How far below its package's folder a program may lie. */
const LEVELS = 6;
const LARGEST_PACKAGE_BYTES = 256 * 1024;

/** As the package.json says that a program of npm lies below; undefined for a program of another origin. */
export function packageVersion(program: string): string | undefined {
  try {
    let folder = dirname(realpathSync(program));
    for (let level = 0; level < LEVELS; level += 1, folder = dirname(folder)) {
      const version = versionIn(join(folder, "package.json"));
      if (version !== undefined) return version;
    }
  } catch {
    // It is gone by now: then it has no version.
  }
  return undefined;
}

function versionIn(file: string): string | undefined {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? Infinity) > LARGEST_PACKAGE_BYTES) return undefined;
  const found: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (typeof found !== "object" || found === null || !("version" in found) || !("bin" in found)) return undefined;
  return typeof found.version === "string" && /^[\w.+-]{1,64}$/.test(found.version) ? found.version : undefined;
}
