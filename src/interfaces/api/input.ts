/** From what a request says to what a handler gets, or one sentence about what is wrong. */
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";

const MAX_DEPTH = 32;
/** Values in all lists and objects of a body together: checking a wrong value costs far more than the two bytes it takes to send. */
const MAX_VALUES = 20_000;
/** Characters of a caller's own words in the sentence about them. */
const MAX_QUOTED = 200;
const BODY_TIMEOUT_MS = 30_000;

const OPEN_BRACE = 123;
const OPEN_BRACKET = 91;
const CLOSE_BRACE = 125;
const CLOSE_BRACKET = 93;
const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;

/** One pass over the bytes, so that a deep or crowded document is refused before anything recursive or patient sees it. */
function refuseBombs(bytes: Buffer): void {
  let depth = 0;
  let values = 1;
  let quoted = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (quoted) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === COMMA) {
      values += 1;
      if (values > MAX_VALUES) throw new VivError("invalid_input", `The body has more than ${MAX_VALUES} values.`);
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      if (depth > MAX_DEPTH) throw new VivError("invalid_input", `The body is nested deeper than ${MAX_DEPTH} levels.`);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
  }
}

/** Leaving the loop early leaves the connection open, so that the refusal can be sent. */
export function chunksOf(incoming: IncomingMessage): AsyncIterable<Buffer> {
  return incoming.iterator({ destroyOnReturn: false });
}

/** The bytes of a body, up to a bound and within a time. What is left of one that is refused stays unread, so that the refusal can be sent. */
export function wholeBody(incoming: IncomingMessage, mostBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => incoming.destroy(), BODY_TIMEOUT_MS);
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    chunks.push(chunk);
    if (size > mostBytes) refuse(new VivError("invalid_input", `The body is larger than ${mostBytes} bytes.`));
  };
  const over = (): void => {
    clearTimeout(timer);
    incoming.off("data", take).off("end", end).off("close", cut).off("error", cut);
  };
  const end = (): void => {
    over();
    resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
  };
  const refuse = (why: VivError): void => {
    over();
    incoming.pause();
    reject(why);
  };
  const cut = (): void => refuse(new VivError("cancelled", "The caller went away."));
  incoming.on("data", take).on("end", end).on("close", cut).on("error", cut);
  return promise;
}

function hasBody(incoming: IncomingMessage): boolean {
  return incoming.headers["transfer-encoding"] !== undefined || Number(incoming.headers["content-length"] ?? 0) > 0;
}

/** The JSON object in the body; an absent body is an empty object. */
export async function readJson(incoming: IncomingMessage): Promise<object> {
  if (!hasBody(incoming)) return {};
  const type = incoming.headers["content-type"] ?? "";
  if (!/^application\/json(\s*;|$)/i.test(type)) throw new VivError("invalid_input", "The body's Content-Type is not application/json.");
  if (Number(incoming.headers["content-length"] ?? 0) > LIMITS.maxBodyBytes)
    throw new VivError("invalid_input", `The body is larger than ${LIMITS.maxBodyBytes} bytes.`);
  return parseObject(await wholeBody(incoming, LIMITS.maxBodyBytes));
}

/** A JSON object from bytes of a caller. */
export function parseObject(bytes: Buffer): object {
  refuseBombs(bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new VivError("invalid_input", "The body is not JSON.", { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new VivError("invalid_input", "The body is not a JSON object.");
  return value;
}

/** Names of files are bytes: those that are no UTF-8 come through as the strings that answers show them as. */
function decodeField(text: string): string {
  const bytes = text.replaceAll("+", " ").replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decodePath(Buffer.from(bytes, "latin1"));
}

/** The fields of a query string; none may stand there twice. */
export function readQuery(url: string): object {
  const start = url.indexOf("?");
  if (start < 0) return {};
  const fields = new Map<string, string>();
  for (const part of url
    .slice(start + 1)
    .split("&")
    .filter(Boolean)) {
    const equals = part.indexOf("=");
    const name = decodeField(equals < 0 ? part : part.slice(0, equals));
    const value = equals < 0 ? "" : decodeField(part.slice(equals + 1));
    if (fields.has(name)) throw new VivError("invalid_input", `Field "${shortened(name)}" is given twice.`);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

/** Fields of the path beside those of query or body; a field stands in one place. */
export function merge(path: Readonly<Record<string, string>>, rest: object): object {
  for (const name of Object.keys(path)) {
    if (Object.hasOwn(rest, name)) throw new VivError("invalid_input", `Field "${name}" belongs in the path only.`);
  }
  return { ...rest, ...path };
}

function shortened(words: string): string {
  return words.length > MAX_QUOTED ? `${words.slice(0, MAX_QUOTED)}…` : words;
}

function sentence(issue: z.core.$ZodIssue): string {
  const place = shortened(issue.path.map(String).join("."));
  if (issue.code === "unrecognized_keys") return `Unknown field "${[place, shortened(issue.keys[0] ?? "")].filter(Boolean).join(".")}".`;
  return place === "" ? `The input is wrong: ${issue.message}.` : `Field "${place}" is wrong: ${issue.message}.`;
}

export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const first = result.error.issues[0];
  throw new VivError("invalid_input", first === undefined ? "The input is wrong." : sentence(first), { cause: result.error });
}
