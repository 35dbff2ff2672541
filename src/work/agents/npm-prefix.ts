/**
 * Where npm puts programs that it installs for all projects, as npm itself decides it, read from its files: to start npm takes longer
 * than the rest of a task's start.
 */
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";

const LARGEST_CONFIG_BYTES = 64 * 1024;

/** The `prefix` of the user's own settings, else of those of the machine, else the folder that Node itself lies in. */
export function npmPrefix({ path, home }: { readonly path: string | undefined; readonly home: string }): string | undefined {
  const nodes = nodePrefix(path);
  const machine = nodes === undefined ? [] : [join(nodes, "etc/npmrc")];
  const named = [join(home, ".npmrc"), ...machine].map((file) => prefixIn(file, home)).find((prefix) => prefix !== undefined);
  return named ?? nodes;
}

/** Of the first Node on the PATH; where that is a link, of the one that it leads to. */
function nodePrefix(path: string | undefined): string | undefined {
  for (const folder of (path ?? "").split(":").filter((each) => isAbsolute(each))) {
    try {
      return dirname(dirname(realpathSync(join(folder, "node"))));
    } catch {
      // There is none here: then the next folder counts.
    }
  }
  return undefined;
}

function prefixIn(file: string, home: string): string | undefined {
  const value = /^[ \t]*prefix[ \t]*=[ \t]*(.*?)[ \t]*$/m.exec(textOf(file))?.[1]?.replace(/^(["'])(.*)\1$/, "$2");
  const prefix = value?.replace(/^~(?=\/|$)/, home).replaceAll("${HOME}", home);
  // Another variable is one of the caller's shell, which is not known here.
  return prefix !== undefined && isAbsolute(prefix) && !prefix.includes("${") ? prefix : undefined;
}

function textOf(file: string): string {
  try {
    return statSync(file).size > LARGEST_CONFIG_BYTES ? "" : readFileSync(file, "utf8");
  } catch {
    // Most users have no such file.
    return "";
  }
}
