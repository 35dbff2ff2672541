/** `$'...'`: text with escapes as in C. */

const SIMPLE: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\u0007",
  b: "\b",
  e: "\u001b",
  E: "\u001b",
  f: "\f",
  v: "\v",
};
/** They stand for themselves; others keep their backslash. */
const ITSELF = new Set(["\\", "'", '"', "?"]);
const DIGITS: Readonly<Record<string, readonly [pattern: RegExp, most: number]>> = {
  x: [/\{([0-9a-fA-F]+)\}?|([0-9a-fA-F]{1,2})/y, 0xff],
  u: [/([0-9a-fA-F]{1,4})/y, 0xffff],
  U: [/([0-9a-fA-F]{1,8})/y, 0x10ffff],
};
const OCTAL = /[0-7]{1,3}/y;

interface Decoded {
  readonly text: string;
  readonly end: number;
}

/** From after the opening quote; undefined if it is never closed. A NUL ends the text, as it does for bash; the rest is passed over. */
export function decodeAnsi(text: string, from: number): Decoded | undefined {
  let result = "";
  let at = from;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === "'") return { text: result.replace(/\0.*/s, ""), end: at + 1 };
    const piece = character === "\\" ? decodeEscape(text, at + 1) : { text: character, end: at + 1 };
    result += piece.text;
    at = piece.end;
  }
  return undefined;
}

function decodeEscape(text: string, at: number): Decoded {
  const letter = text[at] ?? "";
  const simple = SIMPLE[letter] ?? (ITSELF.has(letter) ? letter : undefined);
  if (simple !== undefined) return { text: simple, end: at + 1 };
  if (letter === "c") {
    const code = (text.charCodeAt(at + 1) || 0) & 31;
    return { text: String.fromCharCode(code), end: at + (text.startsWith("\\\\", at + 1) ? 3 : 2) };
  }
  OCTAL.lastIndex = at;
  const octal = OCTAL.exec(text)?.[0];
  if (octal !== undefined) return { text: String.fromCharCode(parseInt(octal, 8) & 0xff), end: at + octal.length };
  return decodeHex(text, at, letter) ?? { text: `\\${letter}`, end: at + 1 };
}

function decodeHex(text: string, at: number, letter: string): Decoded | undefined {
  const [pattern, most] = DIGITS[letter] ?? [];
  if (pattern === undefined || most === undefined) return undefined;
  pattern.lastIndex = at + 1;
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const digits = found[1] ?? found[2] ?? "";
  // However many there are, `x` is one byte.
  const code = letter === "x" ? parseInt(digits.slice(-2), 16) : Math.min(parseInt(digits, 16), most);
  return { text: String.fromCodePoint(code), end: at + 1 + found[0].length };
}
