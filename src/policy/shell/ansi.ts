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
const DIGITS: Readonly<Record<string, readonly [pattern: RegExp, base: number]>> = {
  x: [/[0-9a-fA-F]{1,2}/y, 16],
  u: [/[0-9a-fA-F]{1,4}/y, 16],
  U: [/[0-9a-fA-F]{1,8}/y, 16],
};
const OCTAL = /[0-7]{1,3}/y;
const LAST_CODE_POINT = 0x10ffff;

/** From after the opening quote; undefined if it is never closed. */
export function decodeAnsi(text: string, from: number): { text: string; end: number } | undefined {
  let result = "";
  let at = from;
  while (at < text.length) {
    const character = text[at] ?? "";
    if (character === "'") return { text: result, end: at + 1 };
    if (character !== "\\") {
      result += character;
      at += 1;
      continue;
    }
    const escape = decodeEscape(text, at + 1);
    result += escape.text;
    at = escape.end;
  }
  return undefined;
}

function decodeEscape(text: string, at: number): { text: string; end: number } {
  const letter = text[at] ?? "";
  const simple = SIMPLE[letter];
  if (simple !== undefined) return { text: simple, end: at + 1 };
  if (letter === "c") return { text: String.fromCharCode((text.charCodeAt(at + 1) || 0) & 31), end: at + 2 };
  const [pattern, base] = DIGITS[letter] ?? [OCTAL, 8];
  const start = base === 16 ? at + 1 : at;
  pattern.lastIndex = start;
  const digits = pattern.exec(text)?.[0];
  if (digits === undefined) return { text: letter, end: at + 1 };
  const code = Math.min(parseInt(digits, base), LAST_CODE_POINT);
  return { text: String.fromCodePoint(code), end: start + digits.length };
}
