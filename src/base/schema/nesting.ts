/** JSON that is nested so deeply that code which follows it level by level runs out of stack. It is looked at as text, before it is parsed. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export function isNestedDeeply(json: string, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    if (depth > levels) return true;
  }
  return false;
}

/** A bracket in a string is none. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) return at;
    at += code === BACKSLASH ? 2 : 1;
  }
  return at;
}
