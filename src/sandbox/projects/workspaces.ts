/**
 * Sandboxes that start from no project of reality: from a git repository, or from nothing. The project of such a sandbox is an
 * empty folder of the server's, one for each repository and one for all empty workspaces. So what counts by project (secrets,
 * approvals, budgets, siblings) has something to count by, and whatever looks into the project finds no config and no file.
 * Inside, the files are at /workspace.
 */
import { createHash } from "node:crypto";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { NO_CONFIG } from "../../base/config/project-config.ts";
import { VivError } from "../../base/schema/errors.ts";
import { WORKSPACE } from "../../base/schema/workspace.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import type { Backend } from "../../machine/backends.ts";
import { readPeople } from "../../machine/capture/people.ts";
import type { Parts } from "../shared/parts.ts";
import { knownProject, type ProjectView } from "./projects.ts";

/** `name` is that of the folder; equal names are one project. */
export async function openWorkspace({ store, state }: Pick<Parts, "store" | "state">, name: string): Promise<ProjectView> {
  const path = join(state, "workspaces", name);
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { row: await knownProject(store, path), ...NO_CONFIG };
}

/** Throws for a sandbox that started elsewhere: there is no folder of reality that its change belongs to. */
export function requireProject({ name, start }: Pick<SandboxRow, "name" | "start">, what: string): void {
  if (start === undefined) return;
  const from = start.from === "git" ? `was cloned from ${start.url}` : "started from an empty workspace";
  throw new VivError("no_project", `Sandbox ${name} ${from}: there is no project on this machine to ${what}.`);
}

/** An empty workspace belongs to no person of this machine: what names the caller stays outside, and homes are read-only. */
export function withoutPerson({
  USER: _user,
  LOGNAME: _logname,
  SHELL: _shell,
  ...env
}: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, HOME: "/tmp" };
}

/** The same address in another spelling is another repository: servers may tell them apart. */
export function repositoryName(url: string): string {
  const { host, pathname } = new URL(url);
  const readable = `${host}${pathname}`.replaceAll(/[^A-Za-z0-9.]+/g, "-").slice(0, 80);
  return `${readable}-${createHash("sha256").update(url).digest("hex").slice(0, 8)}`;
}

/** A base that holds nothing but the workspace's folder, which belongs to a user inside; a lasting one where that is always the same user. */
export async function emptyBase(
  parts: Pick<Parts, "uid">,
  view: ProjectView,
  { capture }: Backend,
  user: string,
  lasting?: "lasting",
): Promise<Base> {
  const source = view.row.path;
  const owner = ownerOf(user);
  // Every other user can only be the server's own.
  if (parts.uid === 0) await chown(source, owner.uid, owner.gid);
  // The folder above is closed to all others.
  await chmod(source, 0o755);
  return capture.take({ project: view.row.id, path: WORKSPACE, source, ...(lasting === undefined ? {} : { lasting: true }) });
}

/** As the sandbox's own /etc/passwd says, which is reality's before anything has run inside. */
function ownerOf(user: string): { readonly uid: number; readonly gid: number } {
  const person = readPeople().find(({ name, uid }) => name === user || String(uid) === user);
  if (person !== undefined) return person;
  if (/^\d{1,10}$/.test(user)) return { uid: Number(user), gid: Number(user) };
  throw new VivError("invalid_input", `There is no user ${user} on this machine.`);
}
