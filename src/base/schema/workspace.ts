/** Where the files of a sandbox are inside. Apart from the schemas, so that the command line starts without zod. */
import type { StartingPoint } from "./start.ts";

/** Where the files of a sandbox are that is no clone of a project of this machine. */
export const WORKSPACE = "/workspace";
/** The user that an empty workspace belongs to. */
export const WORKSPACE_USER = "1000";

/** Where the project of a sandbox is inside. */
export function projectInside({ project, start }: { readonly project: string; readonly start?: StartingPoint | null | undefined }): string {
  return start === null || start === undefined ? project : WORKSPACE;
}
