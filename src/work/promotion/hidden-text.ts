/** Where in a text or a name there are characters that are not seen as what they are. */
import { isUtf8 } from "node:buffer";
import { SEEN_SEQUENCE, UNSEEN } from "../../base/schema/unseen.ts";

/** The first group is what is seen. */
const PLACES = new RegExp(`(${SEEN_SEQUENCE})|[${UNSEEN}]`, "gv");
/** Tabs, form feeds and line ends are how text is laid out; a lone carriage return writes over what is before it. */
const MAYBE = new RegExp(String.raw`[[${UNSEEN}]--[\t\n\f\r]]|\r(?!\n)`, "v");
const BYTE_ORDER_MARK = "\ufeff";
/** Blanks that pass for the common one. */
const ODD_BLANK = /[\p{Zs}--[ \u3000]]/v;

/** A file in which one character of so many is no text is none itself; a few stray bytes do not make a text something else. */
const STRAY_SHARE = 50;

function strayBytes(text: string): number {
  return text.match(/[\ufffd\0]/g)?.length ?? 0;
}

/** Of a content, also as text: the first such character in a line that was not there before, and how many more there are; one sentence. */
export function hiddenText(content: Buffer, text: string, before: () => string): string | undefined {
  const isBinary = content.includes(0);
  // Bytes that are no text look like anything.
  if (isBinary && !isUtf8(content) && strayBytes(text) > text.length / STRAY_SHARE) return undefined;
  if (!MAYBE.test(text)) return undefined;
  const known = new Set(MAYBE.test(before()) ? linesOf(before()) : []);
  const places = linesOf(text).flatMap((line, index) => (known.has(line) ? [] : placesIn(line, index + 1)));
  const [first, ...rest] = places.filter(({ character }) => !isBinary || !/\p{Cc}/u.test(character));
  if (first === undefined) return undefined;
  const more = rest.length === 1 ? "; there is 1 more such character" : `; there are ${rest.length} more such characters`;
  return `Line ${first.line}, column ${first.column} holds ${described(first.character)}${rest.length === 0 ? "" : more}.`;
}

/** What in a name is not seen as what it is, in words for a sentence. */
export function hiddenInName(name: string): string | undefined {
  const [character] = [...unseenIn(name).map((found) => found[0]), ...(ODD_BLANK.exec(name) ?? [])];
  return character === undefined ? undefined : described(character);
}

interface Place {
  readonly line: number;
  readonly column: number;
  readonly character: string;
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/);
}

function placesIn(line: string, number: number): Place[] {
  if (!MAYBE.test(line)) return [];
  return unseenIn(line).flatMap(({ 0: character, index }) => {
    const isFine = character === "\t" || character === "\f" || (character === BYTE_ORDER_MARK && number === 1 && index === 0);
    return isFine ? [] : [{ line: number, column: Array.from(line.slice(0, index)).length + 1, character }];
  });
}

function unseenIn(text: string): RegExpExecArray[] {
  return [...text.matchAll(PLACES)].filter(([, seen]) => seen === undefined);
}

function described(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `U+${code}, ${kindOf(character)}`;
}

function kindOf(character: string): string {
  if (/\p{Bidi_Control}/u.test(character)) return "which turns the direction of text";
  if (/\p{Cc}/u.test(character)) return "a control character";
  if (/[\u{e0000}-\u{e007f}]/u.test(character)) return "a tag character, which is not shown";
  if (/\p{Variation_Selector}/u.test(character)) return "a variation selector, which is not shown";
  if (/[\p{Zl}\p{Zp}]/u.test(character)) return "which some programs take for the end of a line";
  if (/\p{Zs}/u.test(character)) return "a blank that is not the common one";
  return "which is not shown";
}
