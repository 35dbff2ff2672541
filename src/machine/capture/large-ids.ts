/** Ids above those that every sandbox has: of accounts, of files, of a caller. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { LIMITS } from "../../base/schema/limits.ts";
import type { LargeIds } from "../../base/store/rows.ts";

/** The largest number means "leave it" to the kernel. */
const NO_ID = 0xffffffff;

export function allIds(several: readonly LargeIds[]): LargeIds {
  return { uids: merged(several.map(({ uids }) => uids)), gids: merged(several.map(({ gids }) => gids)) };
}

/** In the order in which they are wanted: what comes first is mapped where there is no room for all. */
function merged(lists: readonly (readonly number[])[]): number[] {
  return [...new Set(lists.flat())].filter((id) => Number.isInteger(id) && id >= LIMITS.uidRangeSize && id < NO_ID);
}

/** Large ids of a user as a caller names it: a number, or the name of an account, either with a group behind a colon. */
export function idsOfUser(user: string): LargeIds {
  const [own, group] = user.split(":").map((part) => (/^\d{1,10}$/.test(part) ? [Number(part)] : []));
  // One without an account has a group of the same number.
  return allIds([{ uids: own ?? [], gids: [...(group ?? []), ...(own ?? [])] }]);
}

export function idsOfFile(path: string): LargeIds {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? { uids: [], gids: [] } : allIds([{ uids: [found.uid], gids: [found.gid] }]);
}

/** Large ids of this machine's own accounts; further accounts of a directory service can't be listed. */
export function idsOfAccounts(): LargeIds {
  const column = (file: string, index: number): number[] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .split("\n")
          .map((line) => Number(line.split(":")[index]))
      : [];
  return allIds([{ uids: column("/etc/passwd", 2), gids: [...column("/etc/passwd", 3), ...column("/etc/group", 2)] }]);
}
