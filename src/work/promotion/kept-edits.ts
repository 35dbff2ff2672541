/** Files that were edited while a change was written, and so keep it although the rest was taken back: told by name. */
const NAMED = 10;

/** One sentence, with a blank behind it; nothing where there are none. */
export function keptSentence(paths: readonly string[]): string {
  if (paths.length === 0) return "";
  const more = paths.length > NAMED ? ` and ${paths.length - NAMED} more` : "";
  const [verb, pronoun] = paths.length === 1 ? ["was", "keeps"] : ["were", "keep"];
  return `${paths.slice(0, NAMED).join(", ")}${more} ${verb} edited meanwhile and ${pronoun} that edit, with what was written before it. `;
}
