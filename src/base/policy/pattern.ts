/**
 * Patterns with `*`, matched without regular expressions: time grows with the length of pattern and text, whatever they hold.
 * `*` stands for any text, also none and also with slashes. A pattern that ends with " *" also matches without arguments.
 */

/** Stands in a text for a part that is known only when it runs, such as a variable. */
export const UNKNOWN = "\u0001";
/** Longer texts are compared up to here when they hold unknown parts; the rest counts as unknown. */
const COMPARED_CHARACTERS = 512;

export interface Pattern {
  readonly source: string;
  /** Literal text between the stars; one piece if there is none. */
  readonly pieces: readonly string[];
  /** Literal characters before the first star, and in all: what makes it more specific than another. */
  readonly before: number;
  readonly literal: number;
}

export function compile(source: string): Pattern {
  const pieces = source.split("*");
  return {
    source,
    pieces,
    before: pieces[0]?.length ?? 0,
    literal: pieces.reduce((sum, piece) => sum + piece.length, 0),
  };
}

/** How specific a match is: compared in this order, more is more specific. */
export type Specificity = readonly [before: number, literal: number, asWritten: number];

export function isExact(pattern: Pattern): boolean {
  return pattern.pieces.length === 1;
}

/** Undefined if it does not match. A match without the arguments gives way to any other with the same letters. */
export function specificityOf(pattern: Pattern, text: string): Specificity | undefined {
  if (matchesBare(pattern, text)) return [pattern.before - 1, pattern.literal - 1, 0];
  return matches(pattern, text) ? [pattern.before, pattern.literal, 1] : undefined;
}

/** Positive if `a` is more specific. */
export function compareSpecificity(a: Specificity, b: Specificity): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

export function matches(pattern: Pattern, text: string): boolean {
  const { pieces } = pattern;
  const first = pieces[0] ?? "";
  if (pieces.length === 1) return text === first;
  if (!text.startsWith(first)) return matchesBare(pattern, text);
  const last = pieces.at(-1) ?? "";
  const end = text.length - last.length;
  if (end < first.length || !text.endsWith(last)) return false;
  let at = first.length;
  for (let index = 1; index < pieces.length - 1; index += 1) {
    const piece = pieces[index] ?? "";
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** "npm *" matches "npm". */
function matchesBare({ pieces }: Pattern, text: string): boolean {
  const first = pieces[0] ?? "";
  return pieces.length === 2 && pieces[1] === "" && first.length === text.length + 1 && first.endsWith(" ") && first.startsWith(text);
}

/** Could the text match, if its unknown parts were something? */
export function mayMatch(pattern: Pattern, text: string): boolean {
  const unknown = text.indexOf(UNKNOWN);
  if (unknown < 0) return matches(pattern, text);
  const prefix = pattern.pieces[0] ?? "";
  const known = Math.min(unknown, prefix.length);
  if (text.slice(0, known) !== prefix.slice(0, known)) return false;
  const bounded = text.length > COMPARED_CHARACTERS ? text.slice(0, COMPARED_CHARACTERS) + UNKNOWN : text;
  return meet(bounded, pattern.source);
}

/** Do two texts with wildcards have a text in common? One row of a table at a time. */
function meet(text: string, pattern: string): boolean {
  let row = new Uint8Array(pattern.length + 1);
  row[0] = 1;
  for (let column = 0; column < pattern.length && pattern[column] === "*"; column += 1) row[column + 1] = 1;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    const next = new Uint8Array(pattern.length + 1);
    const wild = character === UNKNOWN;
    next[0] = wild ? (row[0] ?? 0) : 0;
    for (let column = 1; column <= pattern.length; column += 1) {
      const other = pattern[column - 1];
      const skips = wild || other === "*" ? (row[column] ?? 0) | (next[column - 1] ?? 0) : 0;
      const steps = wild || other === "*" || other === character ? (row[column - 1] ?? 0) : 0;
      // A star takes the character and stays; an unknown part takes the pattern's character and stays.
      next[column] = skips | steps;
    }
    row = next;
  }
  return row[pattern.length] === 1;
}
