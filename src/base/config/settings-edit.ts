/**
 * One entry in a settings file of another program: everything else in the file stays as it is written, comments too. What came of an
 * edit is read again and compared: a file whose form is not understood is left alone.
 */
import { isDeepStrictEqual } from "node:util";
import { applyEdits, modify, parse as parseJson, printParseErrorCode, type ParseError } from "jsonc-parser";
import { parse as parseToml, stringify } from "smol-toml";
import { VivError } from "../schema/errors.ts";

export type SettingsFormat = "json" | "toml";
type Json = Record<string, unknown>;

/** The text with this value at this place; undefined takes the place's value away. */
export function withEntry(format: SettingsFormat, file: string, text: string, place: readonly string[], value: Json | undefined): string {
  const before = readSettings(format, file, text);
  const edited = format === "json" ? editJson(text, place, value) : editToml(text, place, value);
  if (isDeepStrictEqual(readSettings(format, file, edited), changed(before, place, value))) return edited;
  throw new VivError(
    "unsupported",
    `${file} is written in a way that can't be edited without changing the rest of it; nothing was changed.`,
    {
      remedy: "Run the command with --print, and put what it prints into the file by hand.",
    },
  );
}

export function readEntry(format: SettingsFormat, file: string, text: string, place: readonly string[]): Json | undefined {
  let value: unknown = readSettings(format, file, text);
  for (const key of place) value = isObject(value) ? value[key] : undefined;
  return isObject(value) ? value : undefined;
}

function readSettings(format: SettingsFormat, file: string, text: string): Json {
  // Objects of the TOML parser have no prototype, which would count in a comparison.
  const value: unknown = format === "json" ? readJson(file, text) : structuredClone(readToml(file, text));
  if (isObject(value)) return value;
  throw invalid(file, "it does not hold an object");
}

function readJson(file: string, text: string): unknown {
  if (text.trim() === "") return {};
  const errors: ParseError[] = [];
  const value: unknown = parseJson(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first === undefined) return value;
  const line = text.slice(0, first.offset).split("\n").length;
  throw invalid(file, `line ${line}: ${printParseErrorCode(first.error)}`);
}

function readToml(file: string, text: string): unknown {
  try {
    return parseToml(text);
  } catch (error) {
    throw invalid(file, error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
  }
}

function invalid(file: string, why: string): VivError {
  return new VivError("config_invalid", `${file} can't be read (${why}); nothing was changed.`, {
    remedy: "Correct the file, or use --print.",
  });
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function changed(value: Json, [key = "", ...rest]: readonly string[], entry: Json | undefined): Json {
  const { [key]: old, ...others } = value;
  if (rest.length === 0) return entry === undefined ? others : { ...value, [key]: entry };
  const below = changed(isObject(old) ? old : {}, rest, entry);
  return entry === undefined && (old === undefined || Object.keys(below).length === 0) ? others : { ...value, [key]: below };
}

/** Folders of settings that are left empty go, too. */
function editJson(text: string, place: readonly string[], value: Json | undefined): string {
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
  const formattingOptions = { insertSpaces: !indent.includes("\t"), tabSize: indent.length, eol: text.includes("\r\n") ? "\r\n" : "\n" };
  const edit = (from: string, at: readonly string[], what: Json | undefined): string =>
    applyEdits(from, modify(from, [...at], what, { formattingOptions }));
  const start = text.trim() === "" ? "{}\n" : text;
  const edited = edit(start, place, value);
  const above = place.slice(0, -1);
  const left = value === undefined && above.length > 0 ? readEntry("json", "", edited, above) : undefined;
  return left !== undefined && Object.keys(left).length === 0 ? edit(edited, above, undefined) : edited;
}

/** A table of its own at the end of the file, or in the place of the one that is there. */
function editToml(text: string, place: readonly string[], value: Json | undefined): string {
  const without = withoutTable(text, place);
  if (value === undefined) return without;
  const nested = [...place].reduceRight<Json>((inner, key) => ({ [key]: inner }), value);
  const table = stringify(nested).trim();
  const gap = without.trim() === "" ? "" : `${without.replace(/\n*$/, "")}\n\n`;
  return `${gap}${table}\n`;
}

/** Lines from the table's head to the next head of another table; blank lines before that stay. */
function withoutTable(text: string, place: readonly string[]): string {
  const lines = text.split("\n");
  const kept: string[] = [];
  let isInside = false;
  for (const line of lines) {
    const head = /^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1];
    if (head !== undefined) {
      const keys = head.split(".").map((key) => key.trim().replace(/^(["'])(.*)\1$/, "$2"));
      isInside = place.every((key, index) => keys[index] === key);
    }
    if (!isInside) kept.push(line);
  }
  return kept.length === lines.length
    ? text
    : kept
        .join("\n")
        .replace(/\n{3,}/g, "\n\n")
        .replace(/\n+$/, "\n");
}
