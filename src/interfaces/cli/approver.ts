/** Who may answer questions: a person at a terminal, or a caller that has the token. A program that calls `viv` is neither. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findPaths } from "../../base/config/paths.ts";
import { VivError } from "../../base/schema/errors.ts";
import { hasTerminal, OWN_PROCESS, type Caller } from "./caller.ts";

export function approverToken(env: Readonly<Record<string, string | undefined>>, caller: Caller = OWN_PROCESS): string {
  const given = env["VIV_APPROVER_TOKEN"];
  if (given !== undefined && given !== "") return given;
  if (!hasTerminal(caller))
    throw new VivError("unauthorized", "Only a person on a terminal may do this.", {
      remedy: "Run it on a terminal, or give an approver's token in VIV_APPROVER_TOKEN.",
    });
  return readFileSync(join(findPaths(env).home, "approver-token"), "utf8").trim();
}

/** Undefined if the caller may not answer. */
export function approverIfAny(env: Readonly<Record<string, string | undefined>>, caller: Caller = OWN_PROCESS): string | undefined {
  try {
    return approverToken(env, caller);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    if (code === "unauthorized" || code === "ENOENT" || code === "EACCES") return undefined;
    throw error;
  }
}
