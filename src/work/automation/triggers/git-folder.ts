/** The folder of a project's repository that holds its branches and objects, also where the project is a worktree of another. */
import { join } from "node:path";
import { commonGitFolder, namedGitFolder } from "../../../machine/capture/git-paths.ts";

export async function repositoryOf(project: string): Promise<string> {
  const own = (await namedGitFolder(project)) ?? join(project, ".git");
  return (await commonGitFolder(own)) ?? own;
}
