/** Text from a sandbox, made fit for a line that other programs show: a lock screen, a header of a mail, a terminal. */
import { redact } from "../../base/schema/secret-patterns.ts";

/** Controls, ends of lines, and what turns the direction of text or is not seen at all. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]+/gu;

/** One line of at most so many characters, without what looks secret. */
export function plainLine(text: string, mostCharacters: number): string {
  // Before it is searched: what is longer is cut anyway, and the patterns take time.
  const line = redact(text.slice(0, 20 * mostCharacters).replaceAll(UNSEEN, " "))
    .replaceAll(/\s+/gu, " ")
    .trim();
  const characters = Array.from(line);
  return characters.length <= mostCharacters ? line : `${characters.slice(0, mostCharacters - 1).join("")}…`;
}
