/** What of a call, a result or an error stays the same when it happens again. */
import { createHash } from "node:crypto";

/** What differs each time without meaning anything. */
const NOISE: readonly (readonly [RegExp, string])[] = [
  // oxlint-disable-next-line no-control-regex -- colours of a terminal
  [/\u001b\[[0-9;?]*[A-Za-z]/g, ""],
  [/\b\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?)?(Z|[+-]\d{2}:?\d{2})?/g, "<time>"],
  [/\b\d{1,2}:\d{2}:\d{2}([.,]\d+)?\b/g, "<time>"],
  [
    /\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? ((Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}|\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)( \d{4})?/g,
    "<time>",
  ],
  [/\b1[5-9]\d{8}(\d{3})?\b/g, "<time>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/\b0x[0-9a-f]+\b/gi, "<address>"],
  [/\b(pid|process|PID|Process)([ =:#]{1,3})\d+/g, "$1$2<n>"],
  [/\[\d{3,7}\]/g, "[<n>]"],
  [/(\/private)?\/(tmp|var\/tmp|var\/folders)\/[^\s:'")\]]+/g, "<temporary>"],
  [/\btmp[._-]?[A-Za-z0-9_]{6,}\b/g, "<temporary>"],
  [/\b(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0):\d{4,5}\b/g, "$1:<port>"],
  [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b/g, "<hash>"],
];
const DURATION = /\b\d+(\.\d+)?\s?(ms|µs|us|ns|secs?|seconds?|s|mins?|minutes?|m)\b/g;
const POSITIONS: readonly (readonly [RegExp, string])[] = [
  [/:\d+(:\d+)?\b/g, ":<n>"],
  [/\(\d+,\s?\d+\)/g, "(<n>)"],
  [/\b(line|column|col|offset|byte|position|attempt|try|retry)([ =:#]{1,2})\d+/gi, "$1$2<n>"],
];
const ERROR_LINE =
  /\b(errors?|exception|fail(ed|ure|s)?|cannot|can't|could not|unable|not found|no such|traceback|panic|fatal|denied|refused|undefined|timed? ?out|conflict)\b|Error\b/i;

/** That something failed, and nothing of what: a search without a hit says as much. For words with one space between them. */
const SAYS_NOTHING =
  /^(error )?((process|command|shell) )?((was |has )?(exit(ed)?|failed|returned|ended) )?(with )?((non zero )?exit )?((code|status) )?(\d+ )?$|^no (output|matches|files|results) (found )?$/i;

/** Fields of a tool's input that describe the call, and do not change what it does. */
const REMARKS = new Set(["description", "explanation", "justification", "thought", "title", "timeout", "timeout_ms", "yield_time_ms"]);

/** What lies in the middle of a longer text is compared as it is, with all its noise: looking for that costs time. */
const COMPARED_CHARACTERS = 8 * 1024;
/** Deeper values of an input count as the same. */
const DEEPEST = 32;

export function withoutNoise(text: string): string {
  const half = COMPARED_CHARACTERS / 2;
  const shortened =
    text.length <= COMPARED_CHARACTERS ? text : `${text.slice(0, half)}\n${fingerprint(text.slice(half, -half))}\n${text.slice(-half)}`;
  return NOISE.reduce((left, [pattern, by]) => left.replace(pattern, by), shortened)
    .replace(/[ \t]+/g, " ")
    .trim();
}

export function withoutDurations(text: string): string {
  return text.replace(DURATION, "<duration>");
}

/** What a tool was given, with its keys in order and without remarks. */
export function callText(tool: string, input: unknown): string {
  return `${tool} ${withoutNoise(ordered(input))}`;
}

function ordered(value: unknown, depth = 0): string {
  if (depth > DEEPEST) return "...";
  if (Array.isArray(value)) return `[${value.map((item) => ordered(item, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([name]) => !REMARKS.has(name));
  return `{${fields
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, field]) => `${name}:${ordered(field, depth + 1)}`)
    .join(",")}}`;
}

/** The lines of a failure that say what is wrong, wherever in a file and whenever it happened. Counts stay: two failures are less than three. */
export function errorText(output: string): string {
  const lines = withoutDurations(withoutNoise(output))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => !saysNothing(line));
  const telling = [...new Set(lines.filter((line) => ERROR_LINE.test(line)))];
  // The first say what is wrong, the last how much of it is: a summary of tests stands at the end.
  const chosen = telling.length > 4 ? [...telling.slice(0, 2), ...telling.slice(-2)] : telling.length > 0 ? telling : lines.slice(-2);
  return chosen.map((line) => POSITIONS.reduce((left, [pattern, by]) => left.replace(pattern, by), line).slice(0, 300)).join("\n");
}

function saysNothing(line: string): boolean {
  const words = line.replace(/<\w+>/g, " ").replace(/\W+/g, " ").trimStart();
  return line.length < 200 && SAYS_NOTHING.test(words.endsWith(" ") || words === "" ? words : `${words} `);
}

export function fingerprint(...texts: readonly string[]): string {
  return createHash("sha256").update(texts.join("\0")).digest("base64url").slice(0, 16);
}

/** A text of the agent's in one line, for evidence: it can't break out of the paragraph. */
export function quoted(text: string, characters = 80): string {
  const line = text.replace(/[\s`\p{Cc}]+/gu, " ").trim();
  return `\`${line.length > characters ? `${line.slice(0, characters - 3)}...` : line}\``;
}
