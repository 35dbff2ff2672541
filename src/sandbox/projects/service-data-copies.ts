/**
 * Copies of what running services hold, made by the services' own means: the config's `take` line writes one into an
 * empty folder. A copy counts once it is whole; one that fails or is cut off leaves the earlier one.
 */
import { existsSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, readdir, rename, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { readPeople } from "../../machine/capture/people.ts";
import { errorText } from "../../base/host/log.ts";
import { runInto } from "../../base/host/run-into.ts";
import { run, runChecked, TOOL_PATH } from "../../base/host/run.ts";
import type { Service } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

export interface ServiceDataCopy {
  /** Folder with the copy; null if there never was one. */
  readonly folder: string | null;
  /** Milliseconds since the epoch at which the copy was begun. */
  readonly at: number;
  /** Why it is not a new one. */
  readonly failure?: string;
}

/** What stands in `taken.json`, whose replacement makes a copy the current one. */
interface Record {
  readonly folder: string;
  readonly at: number;
  readonly line: string;
  readonly user: string | null;
}

interface Taker {
  readonly uid: number;
  readonly gid: number;
  readonly cwd: string;
}

const MOST_SAID = 500;

/** A copy that was begun at `notBefore` or later, else the last one and why. `folder` is the service's own in the state folder. */
export async function copyServiceData(folder: string, project: string, service: Service, notBefore: number): Promise<ServiceDataCopy> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const known = readRecord(folder, service);
  if (known !== undefined && known.at >= notBefore && known.at <= Date.now()) return shown(folder, known);
  try {
    return shown(folder, await takeAnew(folder, project, service));
  } catch (error) {
    return { ...shown(folder, known), failure: errorText(error) };
  } finally {
    await clear(folder, service);
  }
}

function shown(folder: string, record: Record | undefined): ServiceDataCopy {
  return record === undefined ? { folder: null, at: 0 } : { folder: join(folder, record.folder), at: record.at };
}

/** The current copy, if it was made by this line. */
function readRecord(folder: string, { take, takeUser }: Service): Record | undefined {
  const file = join(folder, "taken.json");
  if (!existsSync(file)) return undefined;
  const record = JSON.parse(readFileSync(file, "utf8")) as Record;
  const isThis = record.line === take && record.user === (takeUser ?? null) && existsSync(join(folder, record.folder));
  return isThis ? record : undefined;
}

async function takeAnew(folder: string, project: string, service: Service): Promise<Record> {
  const { take: line = "", takeUser } = service;
  const at = Date.now();
  const taker = await findTaker(project, takeUser);
  const target = await mkdtemp(join(folder, "take-"));
  const own = process.getuid?.() ?? taker.uid;
  const become = taker.uid !== own;
  if (become) await chown(target, taker.uid, taker.gid);
  // A folder that a service works on is its own, as PostgreSQL insists; a dump is readable for the user that loads it.
  if (service.load !== undefined) await chmod(target, 0o755);
  const person = readPeople().find(({ uid }) => uid === taker.uid);
  const { code, stdout, stderr } = await runInto({
    line: `umask 022\n${line}`,
    folder: target,
    cwd: taker.cwd,
    env: { PATH: TOOL_PATH, ...(person === undefined ? {} : { HOME: person.home, USER: person.name, LOGNAME: person.name }) },
    timeoutMs: LIMITS.serviceDataMs,
    ...(become ? { become: taker } : {}),
  });
  const said = `${stdout.toString()}\n${stderr}`.trim().slice(-MOST_SAID);
  if (code !== 0) throw new VivError("internal", `The take line ended with ${code ?? "a signal"}${said === "" ? "." : `: ${said}`}`);
  if ((await readdir(target)).length === 0) throw new VivError("internal", "The take line wrote nothing into $VIV_DATA.");
  // A copy that is called whole is whole after a power cut, too.
  await runChecked("sync", ["-f", target], { timeoutMs: LIMITS.serviceDataMs });
  const record: Record = { folder: basename(target), at, line, user: takeUser ?? null };
  await writeFile(join(folder, "taken.json.new"), JSON.stringify(record), { mode: 0o600, flush: true });
  await rename(join(folder, "taken.json.new"), join(folder, "taken.json"));
  return record;
}

/** The project's owner works in the project; another user may not be able to go there. */
async function findTaker(project: string, name: string | undefined): Promise<Taker> {
  const own = process.getuid?.();
  const owner = await stat(project);
  const person = readPeople().find((one) => one.name === name || String(one.uid) === name);
  if (name !== undefined && person === undefined) throw new VivError("invalid_input", `There is no user ${name} on this machine.`);
  const taker = person === undefined ? { uid: owner.uid, gid: owner.gid, cwd: project } : { uid: person.uid, gid: person.gid, cwd: "/" };
  if (own === 0 || taker.uid === own) return taker;
  if (name === undefined && own !== undefined) return { uid: own, gid: process.getgid?.() ?? owner.gid, cwd: project };
  throw new VivError("unsupported", `Only a server that runs as root can take data as ${name ?? ""}.`);
}

/** Nothing stays but the current copy: what is older, was cut off, or was made by another line goes. */
async function clear(folder: string, service: Service): Promise<void> {
  const current = readRecord(folder, service);
  for (const name of await readdir(folder)) {
    if (name.startsWith("take-") && name !== current?.folder) await removeTree(join(folder, name));
  }
}

/**
 * By a program that no link leads astray: something that a line left running may still write there. What it puts back in
 * the meantime goes with the next copy.
 */
export async function removeTree(path: string): Promise<void> {
  await run("rm", ["-rf", "--", path], { timeoutMs: LIMITS.serviceDataMs });
}
