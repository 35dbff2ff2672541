/** Id ranges that were given to users of this machine, as /etc/subuid and /etc/subgid name them. */
import { existsSync, readFileSync } from "node:fs";

interface Range {
  readonly first: number;
  readonly last: number;
}

function given(file: string): Range[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.split(":").slice(1).map(Number))
    .flatMap(([first, count]) =>
      first === undefined || count === undefined || Number.isNaN(first + count) ? [] : [{ first, last: first + count - 1 }],
    );
}

/** Tells whether the n-th range of `size` ids from `start` on overlaps no range of a user. */
export function freeRanges(start: number, size: number): (range: number) => boolean {
  const taken = [...given("/etc/subuid"), ...given("/etc/subgid")];
  return (range) => {
    const first = start + range * size;
    return !taken.some((other) => other.first < first + size && other.last >= first);
  };
}
