/** Whether a project's repository stands still: in the middle of a merge or rebase, files mean something else than they say. */
import { existsSync, lstatSync } from "node:fs";
import { join, resolve } from "node:path";
import { git } from "../../machine/capture/git.ts";
import { VivError } from "../../base/schema/errors.ts";

const UNFINISHED = [
  ["MERGE_HEAD", "merge"],
  ["rebase-merge", "rebase"],
  ["rebase-apply", "rebase"],
  ["CHERRY_PICK_HEAD", "cherry-pick"],
  ["REVERT_HEAD", "revert"],
] as const;

export async function requireSettled(project: string): Promise<void> {
  if (!lstatSync(project, { throwIfNoEntry: false })?.isDirectory())
    throw new VivError("project_not_found", `The project ${project} does not exist any more.`);
  const { code, stdout } = await git(project, ["rev-parse", "--git-dir"]);
  if (code !== 0) return;
  const folder = resolve(project, stdout.toString().trim());
  const found = UNFINISHED.find(([name]) => existsSync(join(folder, name)));
  if (found !== undefined)
    throw new VivError("busy", `${project} is in the middle of a ${found[1]}.`, {
      remedy: `Finish it with \`git ${found[1]} --continue\` or \`--abort\`, then promote.`,
    });
}
