/**
 * A git folder of our own that has the objects and one branch of a project's repository, and none of its settings: those may name
 * programs. The user's and the system's settings count in it as they would in the project, also those for certain folders alone.
 * Of the project it knows the addresses of one remote.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format, type Setting } from "../../machine/capture/gitconfig.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { ProjectGit } from "./project-git.ts";

export interface TemporaryRepository {
  /** Variables by which git finds it. */
  readonly env: Readonly<Record<string, string>>;
  /** What the user's and the system's settings say. */
  readonly user: readonly Setting[];
}

export interface TemporaryRepositoryRequest {
  /** The branch that it has, and its commit; it has none if left out. */
  readonly branch?: string;
  readonly commit?: string;
  /** A name of a remote, or an address, of which nothing needs to be known. */
  readonly remote: string;
}

export async function withTemporaryRepository<T>(
  project: ProjectGit,
  request: TemporaryRepositoryRequest,
  work: (temporary: TemporaryRepository) => Promise<T>,
): Promise<T> {
  const settings = await settingsOf(project);
  const user = settings.filter(({ scope, key }) => ["system", "global"].includes(scope) && !/^include(if)?\./.test(key));
  const { format: objectFormat, objects, shallow } = await project.repository();
  const own = [
    { key: "core.repositoryformatversion", value: "1" },
    { key: "core.bare", value: "true" },
    { key: "extensions.objectformat", value: objectFormat },
    ...settings.filter(({ key }) => [`remote.${request.remote}.url`, `remote.${request.remote}.pushurl`].includes(key)),
  ];
  const folder = await project.lend((at) => {
    for (const name of ["objects/info", "refs"]) mkdirSync(join(at, name), { recursive: true });
    const write = (name: string, text: string | Buffer): void => writeFileSync(join(at, name), text);
    write("HEAD", `ref: refs/heads/${request.branch ?? "main"}\n`);
    write("config", format(own));
    write("user", format(user));
    const ref = request.commit === undefined ? "" : `${request.commit} refs/heads/${request.branch ?? "main"}\n`;
    write("packed-refs", `# pack-refs with: peeled fully-peeled sorted\n${ref}`);
    write("objects/info/alternates", `${JSON.stringify(objects)}\n`);
    if (shallow !== null) write("shallow", shallow);
  });
  try {
    const env = { GIT_DIR: folder, GIT_CONFIG_GLOBAL: join(folder, "user"), GIT_CONFIG_NOSYSTEM: "1" };
    return await work({ env, user });
  } finally {
    await project.takeBack(folder);
  }
}

/** All settings that git would use in the project, and where each comes from. */
async function settingsOf(project: ProjectGit): Promise<(Setting & { readonly scope: string })[]> {
  const { code, stdout, stderr } = await project.ask(["config", "--list", "--show-scope", "--null"], { userSettings: true });
  if (code !== 0)
    throw new VivError("config_invalid", `Git can't read its settings: ${stderr}`, {
      remedy: "Look at `git config --list --show-origin`.",
    });
  const parts = stdout.toString().split("\0");
  const settings: (Setting & { readonly scope: string })[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [scope = "", entry = ""] = parts.slice(at, at + 2);
    const end = entry.indexOf("\n");
    settings.push({ scope, key: end < 0 ? entry : entry.slice(0, end), value: end < 0 ? undefined : entry.slice(end + 1) });
  }
  return settings;
}
