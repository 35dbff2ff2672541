/** Values of options from text, with a sentence when they are wrong. No schema library: start-up time matters here. */
import { VivError } from "../schema/errors.ts";
import type { ValueOption } from "./command.ts";

const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i;
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/i;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function usageError(message: string, remedy?: string): VivError {
  return new VivError("usage", message, remedy === undefined ? {} : { remedy });
}

export function parseValue(name: string, option: ValueOption, text: string): string | number {
  switch (option.type) {
    case "text":
      return text;
    case "integer":
      return parseInteger(name, text);
    case "number":
      return parseNumber(name, text);
    case "size":
      return parseSize(name, text);
    case "duration":
      return parseDuration(name, text);
  }
}

export function parseInteger(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw usageError(`${name} takes a whole number, not ${quote(text)}.`);
}

function parseNumber(name: string, text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw usageError(`${name} takes a number, not ${quote(text)}.`);
}

function parseSize(name: string, text: string): number {
  const match = SIZE.exec(text);
  if (!match) throw usageError(`${name} takes a size such as 512m or 4g, not ${quote(text)}.`);
  const power = ["", "k", "m", "g", "t"].indexOf((match[2] ?? "").toLowerCase());
  return Math.round(Number(match[1]) * 1024 ** power);
}

export function parseDuration(name: string, text: string): number {
  if (text === "0") return 0;
  const match = DURATION.exec(text);
  if (!match) throw usageError(`${name} takes a duration such as 90s, 10m or 2h, not ${quote(text)}.`);
  return Math.round(Number(match[1]) * (UNIT_MS[(match[2] ?? "ms").toLowerCase()] ?? 1));
}

export function parsePort(name: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw usageError(`${name} is a port from 1 to 65535, not ${quote(text)}.`);
}

/** NAME=VALUE pairs; a bare name takes its value from the given environment, where there is one. */
export function parsePairs(
  option: string,
  pairs: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    const name = equals < 0 ? pair : pair.slice(0, equals);
    const value = equals < 0 ? env?.[name] : pair.slice(equals + 1);
    if (name === "" || (equals < 0 && env === undefined)) throw usageError(`${option} takes NAME=VALUE, not ${quote(pair)}.`);
    if (value === undefined) throw usageError(`${option} ${name}: there is no variable of that name to pass on.`);
    result[name] = value;
  }
  return result;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
