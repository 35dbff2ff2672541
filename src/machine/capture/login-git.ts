/** Git's file of credentials: an address with a login on each line. */
import { readAddresses } from "./addresses.ts";
import type { Read } from "./logins.ts";

/** Each line is shown whole or not at all. */
export function git(text: string): Read {
  const lines = text.split("\n").map((line) => readAddresses(line.trim()));
  return {
    logins: lines.flatMap(({ logins }) => logins),
    unusable: lines.flatMap(({ unusable }) => unusable),
    shown: (placeholders) => {
      const given = [...placeholders];
      return lines
        .map(({ logins, shown }) => {
          const own = given.splice(0, logins.length);
          const line = own.length === 0 || own.includes(undefined) ? undefined : shown(own);
          return line === undefined ? "" : `${line}\n`;
        })
        .join("");
    },
  };
}
