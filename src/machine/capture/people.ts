/** The people of this machine and their home folders. */
import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { namesIn } from "../../base/host/names-in.ts";

export interface Person {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** Services have homes such as / or /var/lib/x, which are not home folders of people. */
const FIRST_PERSON = 1000;
const NOBODY_UID = 65_534;
const NAMES_OF_HOMES = new Set(["home", "homes", "users", "Users"]);

export function parsePeople(passwd: string): Person[] {
  const people: Person[] = [];
  for (const line of passwd.split("\n")) {
    const [name, , uid, gid, , home] = line.split(":");
    if (name === undefined || uid === undefined || !home?.startsWith("/")) continue;
    people.push({ name, uid: Number(uid), gid: Number(gid), home });
  }
  return people;
}

export function readPeople(): Person[] {
  return parsePeople(readFileSync("/etc/passwd", "utf8"));
}

/** Home folders of people, as they are and as they resolve: from /etc/passwd, /home/*, and the ones given. */
export function homeFolders(people: readonly Person[], given: readonly string[] = []): string[] {
  const homes = new Set(["/root", ...given]);
  for (const person of people) {
    const isPerson = person.uid === 0 || (person.uid >= FIRST_PERSON && person.uid !== NOBODY_UID);
    if (isPerson && person.home !== "/") homes.add(person.home);
  }
  for (const name of namesIn("/home")) homes.add(join("/home", name));
  for (const home of homes) {
    const real = resolved(home);
    if (real !== undefined) homes.add(real);
  }
  homes.delete("/");
  return [...homes].toSorted();
}

/** The home that a caller claims, if it is a home folder of this machine; the server's own otherwise. */
export function callersHome(claimed: string | undefined, own: string): string {
  return claimed !== undefined && claimed !== own && homeFolders(readPeople()).includes(claimed) ? claimed : own;
}

/** Folders around homes. They hold more homes than /etc/passwd knows of: people may come from a directory service. */
export function foldersOfHomes(homes: readonly string[]): string[] {
  return [...new Set(homes.map((home) => dirname(home)))].filter((folder) => NAMES_OF_HOMES.has(basename(folder)));
}

function resolved(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined; // a home that is not there hides nothing
  }
}
