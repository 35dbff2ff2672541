/** A request to a model API as data: which call it is, what it may cost, and what of it is sent on. Everything in it is hostile. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ModelShape } from "../../base/schema/model.ts";
import { parseObject } from "./json.ts";
import { Refusal } from "./refusal.ts";

/** What a request may cost: all of it is the request's own word, and the provider's rule. */
export interface MaximumCost {
  readonly model: string;
  readonly inputTokens: number;
  /** At most. */
  readonly outputTokens: number;
  /** How many times as much the tier costs. */
  readonly factor: number;
  /** The answer is written event by event, and the provider stops when the reader hangs up. */
  readonly streamed: boolean;
}

export interface ModelRequest {
  readonly method: "GET" | "POST";
  /** Below the provider's base address. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  /** Undefined where nothing is billed. */
  readonly billed: MaximumCost | undefined;
  /** Events with the usage alone were not asked for by the program inside. */
  readonly hideUsage: boolean;
}

/**
 * Calls whose use can be read from their answer. Others (batches, files, assistants) would spend without being counted, or read what
 * other programs left with the provider.
 */
const CALLS: Readonly<Record<ModelShape, Readonly<Record<string, "billed" | "free">>>> = {
  anthropic: { "POST /v1/messages": "billed", "POST /v1/messages/count_tokens": "free", "GET /v1/models": "free" },
  openai: { "POST /chat/completions": "billed", "POST /responses": "billed", "POST /embeddings": "billed", "GET /models": "free" },
  gemini: {
    "POST /v1beta/models/*:generateContent": "billed",
    "POST /v1beta/models/*:streamGenerateContent": "billed",
    "POST /v1beta/models/*:countTokens": "free",
    "GET /v1beta/models": "free",
  },
};
const MODEL_CALL = /^GET ((?:\/v1|\/v1beta)?\/models)\/[\w.:-]{1,128}$/;
/** Gemini names the model in the path. */
const GEMINI_CALL = /^(POST \/v1beta\/models\/)([\w.-]{1,128})(:\w+)$/;
const PASSED =
  /^(content-type|accept|user-agent|anthropic-version|anthropic-beta|openai-beta|x-stainless-[a-z-]+|x-goog-api-client|idempotency-key)$/;
const QUERY = /^\?[\w=&.,-]{0,512}$/;
/** Other parameters of Google's APIs leave the counts out of the answer, or pack it. */
const GEMINI_QUERY = /^\?(key=[\w.-]*|alt=(sse|json)|pageSize=\d+|pageToken=[\w-]+|&)*$/;
const CHARACTERS_PER_TOKEN = 4;
/** Where a request says nothing: more than nearly all answers have. */
const USUAL_OUTPUT_TOKENS = 16_384;
const MOST_OUTPUT_TOKENS = 1_000_000;
const USUAL_TIERS: ReadonlySet<unknown> = new Set(["auto", "default", "standard", "standard_only", "flex"]);
const PRIORITY_FACTOR = 2.5;
const FAST_FACTOR = 6;

/** `came` is told of every piece of the body, and may throw. */
export async function readModelRequest(
  message: IncomingMessage,
  shape: ModelShape,
  rest: string,
  came: (bytes: number) => void = () => undefined,
): Promise<ModelRequest> {
  const at = rest.indexOf("?");
  const asksFor = at < 0 ? "" : rest.slice(at);
  // Some programs add the version by themselves.
  const path =
    shape === "openai" ? rest.slice(0, at < 0 ? undefined : at).replace(/^\/v1(?=\/)/, "") : rest.slice(0, at < 0 ? undefined : at);
  const { method = "" } = message;
  const call = CALLS[shape][`${method} ${path}`.replace(MODEL_CALL, "GET $1").replace(GEMINI_CALL, "$1*$3")];
  if (call === undefined || (asksFor !== "" && !(shape === "gemini" ? GEMINI_QUERY : QUERY).test(asksFor)))
    throw new Refusal("no_such_call", `The gateway does not pass on ${method} ${path.slice(0, 200)}: what it costs could not be counted.`);
  // The placeholder is no key: the real one goes into a header.
  const query = shape === "gemini" ? asksFor.replace(/(?<=[?&])key=[^&]*&?/, "").replace(/[?&]$/, "") : asksFor;
  const headers = passedOn(message.headers);
  if (method === "GET") return { method, path: path + query, headers, body: undefined, billed: undefined, hideUsage: false };
  const body = await readBody(message, came);
  const asked = parseObject(body);
  const plain = { method: "POST", path: path + query, headers, body, hideUsage: false } as const;
  if (call === "free") return { ...plain, billed: undefined };
  const [, , named, verb] = GEMINI_CALL.exec(`${method} ${path}`) ?? [];
  const model = named ?? asked["model"];
  if (typeof model !== "string" || model === "" || model.length > 128) throw new Refusal("invalid_request", "The request names no model.");
  if (asked["background"] === true)
    throw new Refusal("invalid_request", "Answers in the background can't be counted: leave `background` out.");
  const billed = {
    model,
    inputTokens: Math.ceil(body.length / CHARACTERS_PER_TOKEN),
    outputTokens: mostOutput(path, asked),
    factor: tier(asked),
    streamed: asked["stream"] === true || verb === ":streamGenerateContent",
  };
  // What is sent is what was priced, also where a field further down stood twice.
  if (shape === "gemini") return { ...plain, billed, body: Buffer.from(JSON.stringify(asked)) };
  if (path !== "/chat/completions" || asked["stream"] !== true || wantsUsage(asked)) return { ...plain, billed };
  const options = { ...(asked["stream_options"] as object | null | undefined), include_usage: true };
  return { ...plain, billed, body: Buffer.from(JSON.stringify({ ...asked, stream_options: options })), hideUsage: true };
}

function passedOn(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) if (typeof value === "string" && PASSED.test(name)) passed[name] = value;
  // Otherwise the use could not be read.
  return { ...passed, "accept-encoding": "identity" };
}

function wantsUsage(asked: Readonly<Record<string, unknown>>): boolean {
  return (asked["stream_options"] as { include_usage?: unknown } | null | undefined)?.include_usage === true;
}

/** The fields that the call itself knows; others would say little where the provider does not look at them. */
const MOST_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "/v1/messages": ["max_tokens"],
  "/chat/completions": ["max_completion_tokens", "max_tokens"],
  "/responses": ["max_output_tokens"],
};

function mostOutput(path: string, asked: Readonly<Record<string, unknown>>): number {
  if (path === "/embeddings") return 0;
  if (path.startsWith("/v1beta/")) return mostOfGemini(asked);
  const given = (MOST_FIELDS[path] ?? []).map((name) => asked[name]).filter((value) => typeof value === "number" && value >= 0);
  const each = given.length === 0 ? USUAL_OUTPUT_TOKENS : Math.max(...(given as number[]));
  const choices = path === "/chat/completions" && typeof asked["n"] === "number" && asked["n"] > 1 ? asked["n"] : 1;
  return Math.min(Math.ceil(each * choices), MOST_OUTPUT_TOKENS);
}

/** Google's APIs take both spellings of a field. */
function mostOfGemini(asked: Readonly<Record<string, unknown>>): number {
  const numbers = (...names: readonly string[]): number[] =>
    [asked["generationConfig"], asked["generation_config"]].flatMap((config) =>
      typeof config !== "object" || config === null
        ? []
        : names.map((name) => (config as Record<string, unknown>)[name]).filter((value) => typeof value === "number" && value >= 0),
    ) as number[];
  const given = numbers("maxOutputTokens", "max_output_tokens");
  const each = given.length === 0 ? USUAL_OUTPUT_TOKENS : Math.max(...given);
  return Math.min(Math.ceil(each * Math.max(1, ...numbers("candidateCount", "candidate_count"))), MOST_OUTPUT_TOKENS);
}

/** Tiers that cost more than the table says, by the most that any of them does. */
function tier(asked: Readonly<Record<string, unknown>>): number {
  const { service_tier: service = asked["serviceTier"], speed } = asked;
  if (speed !== undefined && speed !== null && speed !== "standard") return FAST_FACTOR;
  return service === undefined || service === null || USUAL_TIERS.has(service) ? 1 : PRIORITY_FACTOR;
}

async function readBody(message: IncomingMessage, came: (bytes: number) => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    came(chunk.length);
    if (bytes > LIMITS.modelBodyBytes) throw new Refusal("too_large", `A request has at most ${LIMITS.modelBodyBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
