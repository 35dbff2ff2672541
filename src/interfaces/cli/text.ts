/** Text for people: safe to show, as wide as it looks, in units one reads. */
import { SEEN_SEQUENCE, UNSEEN } from "../../base/schema/unseen.ts";

const PLAIN = /^[ -~]*$/;
const PLAIN_LINES = /^[\n -~]*$/;

/**
 * Control characters move cursors and rewrite what was printed; direction marks and invisible ones disguise names.
 * Names, paths and commands come from sandboxes, which may be hostile, so all of them are shown as escapes.
 */
function unsafe(): RegExp {
  made.unsafe ??= new RegExp(String.raw`(${SEEN_SEQUENCE})|[${UNSEEN}]|\p{Surrogate}`, "gv");
  return made.unsafe;
}

/** Made when it is needed: that takes longer than most commands have to start. */
const made: { unsafe?: RegExp } = {};

export function clean(text: string): string {
  return PLAIN.test(text) ? text : text.replace(unsafe(), (character, seen?: string) => seen ?? escapeOf(character));
}

function escapeOf(character: string): string {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  if (character === "\r") return "\\r";
  const code = character.codePointAt(0) ?? 0;
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** Latin letters in disguise: full-width and mathematical ones. */
const DISGUISED = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}]/gu;
const WORD = /[\p{L}\p{M}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const LOOKS_LATIN = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/gu;

/** A path from a sandbox. A word that mixes Latin letters with their look-alikes poses as another, so those are escapes, too. */
export function cleanPath(path: string): string {
  const escape = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  const plain = clean(path).replace(DISGUISED, escape);
  return plain.replace(WORD, (word) => (LATIN.test(word) ? word.replace(LOOKS_LATIN, escape) : word));
}

/** JSON on which a terminal can't choke either: the same value, with escapes for what clean() would escape. */
export function cleanJson(value: unknown, indent?: number): string {
  const json = JSON.stringify(value, null, indent) ?? "null";
  if (PLAIN_LINES.test(json)) return json;
  return json.replace(unsafe(), (character, seen?: string) => {
    if (character === "\n" || seen !== undefined) return character;
    let escaped = "";
    for (let index = 0; index < character.length; index += 1) escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    return escaped;
  });
}

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation})$/u;

/** Columns a clean text takes on a terminal. */
export function width(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const character of text) {
    if (character >= " " && character <= "~") columns += 1;
    else if (!ZERO_WIDTH.test(character)) columns += WIDE.test(character) ? 2 : 1;
  }
  return columns;
}

/** Cuts a clean text to a width, with an ellipsis. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = "";
  let used = 0;
  for (const character of text) {
    const next = width(character);
    if (used + next > columns - 1) break;
    kept += character;
    used += next;
  }
  return `${kept}…`;
}

export function bytes(count: number | null): string {
  if (count === null) return "-";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = count;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit] ?? ""}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return join(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 86_400) return join(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return join(Math.floor(seconds / 86_400), "d", Math.floor((seconds % 86_400) / 3600), "h");
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** "3 min ago". */
export function ago(iso: string, now: number = Date.now()): string {
  const ms = now - Date.parse(iso);
  if (!Number.isFinite(ms)) return clean(iso);
  return ms < 1000 ? "now" : `${coarse(ms)} ago`;
}

/** "in 59 min"; null never comes. */
export function until(iso: string | null, now: number = Date.now()): string {
  if (iso === null) return "never";
  const ms = Date.parse(iso) - now;
  return ms <= 0 ? "now" : `in ${coarse(ms)}`;
}

function coarse(ms: number): string {
  const full = duration(ms);
  return full.split(" ").slice(0, 2).join(" ");
}

export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
