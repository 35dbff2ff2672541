/** Ranges of user ids, as the kernel and the machine's files tell them. */
import { existsSync, readFileSync } from "node:fs";

export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/** The outer side of a uid_map. */
export function idRanges(map: string): IdRange[] {
  return map
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([, first = 0, count = 0]) => ({ first, last: first + count - 1 }));
}

/** What /etc/subuid or /etc/subgid gives to users, or the id of each user of /etc/passwd. */
export function givenRanges(file: string): IdRange[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const [, second, third] = line.split(":").map(Number);
    if (file.endsWith("passwd")) return { first: third ?? 0, last: third ?? 0 };
    return { first: second ?? 0, last: (second ?? 0) + (third ?? 0) - 1 };
  });
}

/** Those of `others` that share an id with one of `ranges`. */
export function overlaps(ranges: readonly IdRange[], others: readonly IdRange[]): IdRange[] {
  return others.filter((other) => ranges.some((range) => range.first <= other.last && other.first <= range.last));
}
