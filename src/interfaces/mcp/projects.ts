/** Which folders a chat client may name: those that the user's config or the command line of `viv mcp` trusts, and what is below. */
import { realpathSync } from "node:fs";
import { relative } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import type { McpParts } from "./parts.ts";

/** As it is without links; undefined where it is not there. */
export function realFolder(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

export function trustedProject({ projects }: Pick<McpParts, "projects">, asked: string | undefined): string {
  const [only] = projects;
  if (asked === undefined && only !== undefined && projects.length === 1) return only;
  if (asked === undefined)
    throw new VivError("invalid_input", "Name a project.", {
      remedy: projects.length === 0 ? noneYet("PATH") : "Call list to see which projects there are.",
    });
  const real = realFolder(asked);
  if (real !== undefined && isOpened({ projects }, real)) return real;
  throw new VivError("denied", `${JSON.stringify(asked.slice(0, 200))} is not a folder that the person has opened to chat clients.`, {
    remedy: noneYet(asked),
  });
}

/** For what a person or another program made in a project that is closed to chats. */
export function notOpened(what: string): VivError {
  return new VivError("denied", `${what} was not made by a chat, and belongs to no folder that the person has opened to chat clients.`, {
    remedy: noneYet("PATH"),
  });
}

/** Whether a folder is one that a client may name. */
export function isOpened({ projects }: Pick<McpParts, "projects">, path: string): boolean {
  const real = realFolder(path) ?? path;
  return projects.some((opened) => isBelow(real, opened));
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !way.startsWith("/"));
}

function noneYet(path: string): string {
  return `Tell the person: to open a folder, add it to mcp.projects in the user's config, or to the client's settings as \`viv mcp --project ${JSON.stringify(path.slice(0, 200))}\`.`;
}
