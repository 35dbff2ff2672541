/** About how many tokens a text is to a model, without any model's vocabulary. */

/** English prose has more characters in a token, code and output of programs have fewer. */
const ASCII_TOKENS = 1 / 3.5;

export function estimateTokens(text: string): number {
  let others = 0;
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7f) others += 1;
  return Math.ceil((text.length - others) * ASCII_TOKENS + others);
}

/** The longest beginning that takes no more than these tokens. */
export function headOf(text: string, tokens: number): string {
  let left = tokens;
  let end = 0;
  while (end < text.length && (left -= costOf(text, end)) >= 0) end += 1;
  return text.slice(0, end).replace(/[\ud800-\udbff]$/, "");
}

/** The longest end that takes no more than these tokens. */
export function tailOf(text: string, tokens: number): string {
  let left = tokens;
  let start = text.length;
  while (start > 0 && (left -= costOf(text, start - 1)) >= 0) start -= 1;
  return text.slice(start).replace(/^[\udc00-\udfff]/, "");
}

function costOf(text: string, index: number): number {
  return text.charCodeAt(index) > 0x7f ? 1 : ASCII_TOKENS;
}
