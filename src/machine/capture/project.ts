/** Which folder is the project. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { foldersOfHomes, homeFolders, readPeople } from "./people.ts";

const MARKS = ["vivarium.json", ".git"];
/** Folders of the system that a clone holds anyway. */
const SYSTEM = new Set([
  "/",
  "/bin",
  "/boot",
  "/etc",
  "/home",
  "/lib",
  "/lib32",
  "/lib64",
  "/media",
  "/mnt",
  "/opt",
  "/sbin",
  "/srv",
  "/tmp",
  "/usr",
  "/var",
]);
const KERNEL = ["/proc", "/sys", "/dev", "/run"];

/** The nearest folder with a vivarium.json or .git, at or above `start`, resolved. */
export function findProject(start: string, stateFolder: string): string {
  const from = resolveFolder(start);
  for (let folder = from; ; folder = dirname(folder)) {
    if (MARKS.some((mark) => existsSync(join(folder, mark)))) return allowed(folder, stateFolder);
    if (folder === dirname(folder)) break;
  }
  throw new VivError("project_not_found", `Neither ${from} nor a folder above it has a vivarium.json or a .git.`, {
    remedy: "Change into a project folder, pass `--project PATH`, or put a vivarium.json with `{}` into the folder.",
  });
}

function resolveFolder(path: string): string {
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    throw new VivError("project_not_found", `The folder ${path} does not exist or can't be entered.`, { cause });
  }
  throw new VivError("project_not_found", `${path} is not a folder.`);
}

function allowed(folder: string, stateFolder: string): string {
  const why = refusal(folder, existsSync(stateFolder) ? realpathSync(stateFolder) : stateFolder);
  if (why === undefined) return folder;
  throw new VivError("project_not_found", `${folder} can't be a project: ${why}.`);
}

function refusal(folder: string, state: string): string | undefined {
  if (SYSTEM.has(folder) || KERNEL.some((system) => isWithin(folder, system))) return "it is a folder of the system";
  const homes = homeFolders(readPeople(), [homedir()]);
  if ([...homes, ...foldersOfHomes(homes)].includes(folder)) {
    return "it is a home folder, and would bring keys and logins into the clone; make the project a folder inside it";
  }
  if (isWithin(folder, state)) return "it lies in Vivarium's own state folder";
  if (isWithin(state, folder)) return `Vivarium's own state folder ${state} lies in it`;
  return undefined;
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
