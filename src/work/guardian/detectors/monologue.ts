/** The agent talks and does nothing, or says the same over and over. */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const monologue: Detector = ({ texts, open }) => {
  const newest = texts.at(-1);
  if (newest === undefined || open.length > 0) return undefined;
  const same = texts.filter(({ key }) => key === newest.key);
  const chanted = chantIn(newest.text);
  const isSure = same.length >= THRESHOLDS.sameTexts || chanted !== undefined;
  if (!isSure && texts.length < THRESHOLDS.texts) return undefined;
  const [first = newest] = texts;
  const what =
    chanted !== undefined
      ? `repeats itself within one text (event ${newest.sequence}): ${quoted(chanted)}`
      : same.length >= THRESHOLDS.sameTexts
        ? `said the same ${same.length} times without doing anything (events ${same.map(({ sequence }) => sequence).join(", ")}): ${quoted(newest.text)}`
        : `spoke ${texts.length} times in a row without doing anything (events ${first.sequence} to ${newest.sequence})`;
  return {
    concern: "stuck",
    confidence: isSure ? 0.85 : 0.55,
    evidence: `The agent ${what}.`,
    key: `monologue ${isSure ? newest.key : first.sequence}`,
    since: first.at,
    at: newest.at,
  };
};

/** What the end of a text says again and again, word for word. Lines of tables and rulers are too short or have no words. */
function chantIn(text: string): string | undefined {
  const { chantCharacters, chantRepeats } = THRESHOLDS;
  const longest = Math.floor(text.length / chantRepeats);
  const end = text.slice(-chantCharacters);
  for (let from = text.length - chantCharacters; from > 0;) {
    const at = text.lastIndexOf(end, from - 1);
    const period = text.length - chantCharacters - at;
    if (at === -1 || period > longest) return undefined;
    const chant = text.slice(-period);
    if (period >= chantCharacters && text.endsWith(chant.repeat(chantRepeats)) && (chant.match(/\p{L}{3,}/gu)?.length ?? 0) >= 2)
      return chant;
    from = at;
  }
  return undefined;
}
