/** Which ids above the usual range exist in a sandbox: the caller's, the project's, and the machine's own as far as there is room. */
import type { Base, LargeIds } from "../../base/store/rows.ts";
import { allIds, idsOfAccounts, idsOfFile, idsOfUser } from "../../machine/capture/large-ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

const NONE: LargeIds = { uids: [], gids: [] };
const LISTED = 5;

export function mappedIds({ user, home }: Pick<SandboxRow, "user" | "home">, base: Base): LargeIds {
  const wanted = allIds([...needed({ user, home }, base), idsOfAccounts()]);
  return { uids: wanted.uids.slice(0, LIMITS.largeIds), gids: wanted.gids.slice(0, LIMITS.largeIds) };
}

/** What a caller should know of owners for which there is no room, a sentence. */
export function unmappedNotes(row: Pick<SandboxRow, "user" | "home">, base: Base): string[] {
  const { uids, gids } = allIds(needed(row, base));
  return [...noteOf("users", uids.slice(LIMITS.largeIds)), ...noteOf("groups", gids.slice(LIMITS.largeIds))];
}

function needed({ user, home }: Pick<SandboxRow, "user" | "home">, base: Base): LargeIds[] {
  return [idsOfUser(user), idsOfFile(home), base.owners ?? NONE];
}

function noteOf(kind: "users" | "groups", left: readonly number[]): string[] {
  if (left.length === 0) return [];
  const more = left.length > LISTED ? ` and ${left.length - LISTED} more` : "";
  const owned = kind === "users" ? "their files belong to nobody inside" : "files of these groups belong to nogroup inside";
  return [
    `Only ${LIMITS.largeIds} ${kind} with ids from ${LIMITS.uidRangeSize} on exist in a sandbox, so ${owned}: ${left.slice(0, LISTED).join(", ")}${more}.`,
  ];
}
