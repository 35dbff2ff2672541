/** Values of options from text, with a sentence when they are wrong. No schema library: start-up time matters here. */
import { VivError } from "../../base/schema/errors.ts";
import { decimalNumber, durationInMs, portNumber, sizeInBytes, wholeNumber } from "../../base/schema/numbers.ts";
import type { ValueOption } from "./command.ts";

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
  return wholeNumber(text) ?? wrong(`${name} takes a whole number`, text);
}

function parseNumber(name: string, text: string): number {
  return decimalNumber(text) ?? wrong(`${name} takes a number`, text);
}

function parseSize(name: string, text: string): number {
  return sizeInBytes(text) ?? wrong(`${name} takes a size such as 512m or 4g`, text);
}

export function parseDuration(name: string, text: string): number {
  if (text === "0") return 0;
  return durationInMs(text) ?? wrong(`${name} takes a duration such as 90s, 10m or 2h`, text);
}

export function parsePort(name: string, text: string): number {
  return portNumber(text) ?? wrong(`${name} is a port from 1 to 65535`, text);
}

function wrong(what: string, text: string): never {
  throw usageError(`${what}, not ${quote(text)}.`);
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
