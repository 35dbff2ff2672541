/** A long text in short: its beginning, its end, and the lines between that tell of an error. */
import { estimateTokens, headOf, tailOf } from "./tokens.ts";

/** Each begins at the start of a word and looks a few characters far: a hostile line costs no more than another. */
const ERROR_LINE =
  /\b(?:errors?|fail(?:s|ed|ing|ure)?|fatal|panic|exception|traceback|denied|refused|cannot|can't|unable|undefined|not found|no such|timed? ?out|abort(?:ed)?|segfault|killed|conflict|\w{1,40}(?:error|exception))\b/i;
/** As programs announce one, not as people write about one. */
const ANNOUNCED_ERROR = /\b(?:\w{0,40}(?:error|exception)(?:\[\w{1,10}\])?|fatal|panic|FAIL(?:ED)?)\s?[:\](!]/i;
const LOOKED_AT = 300;
/** What the remark about the gap takes, and the least that is worth one. */
const GAP_TOKENS = 16;
const LEAST_TOKENS = 3 * GAP_TOKENS;
const SHARES = { head: 0.45, errors: 0.25 };
const LINE_TOKENS = 60;

function isErrorLine(line: string): boolean {
  return ERROR_LINE.test(line.slice(0, LOOKED_AT));
}

/** How much more a line says for telling of an error. */
export function errorWeight(line: string): number {
  return ANNOUNCED_ERROR.test(line.slice(0, LOOKED_AT)) ? 5 : isErrorLine(line) ? 1.5 : 1;
}

/** Takes at most these tokens. */
export function shorten(text: string, tokens: number): string {
  if (estimateTokens(text) <= tokens) return text;
  if (tokens < LEAST_TOKENS) return tokens < 2 ? "" : `${headOf(text, tokens - 1)}…`;
  const room = tokens - GAP_TOKENS;
  const head = wholeLines(headOf(text, room * SHARES.head));
  const errors = errorLines(text.slice(head.length), room * SHARES.errors);
  const tail = tailOf(text.slice(head.length), room - estimateTokens(head) - estimateTokens(errors) - 2);
  const missing = text.length - head.length - tail.length;
  return `${head}\n[${missing} characters left out]\n${errors}${tail}`;
}

/** The first of them; what the end of the text repeats does no harm. */
function errorLines(text: string, tokens: number): string {
  let kept = "";
  let left = tokens;
  for (const line of linesOf(text)) {
    if (!isErrorLine(line)) continue;
    const shown = `${headOf(line.trim(), LINE_TOKENS)}\n`;
    left -= estimateTokens(shown);
    if (left < 0) break;
    kept += shown;
  }
  return kept;
}

/** Without a half line at its end, where that costs little. */
function wholeLines(head: string): string {
  const end = head.lastIndexOf("\n");
  return end > head.length * 0.7 ? head.slice(0, end) : head;
}

/** One after the other: a hostile text may be one line, or nothing but ends of lines. */
export function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    const found = text.indexOf("\n", start);
    const end = found === -1 ? text.length : found;
    if (end > start) yield text.slice(start, end);
    start = end + 1;
  }
}
