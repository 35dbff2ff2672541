/** Sends a request on with the real key, and brings the answer in without it. */
import { request as requestPlain, type IncomingMessage, type ServerResponse } from "node:http";
import { request as requestTls } from "node:https";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ModelShape } from "../../base/schema/model.ts";
import { dataOf, EventSplitter } from "./events.ts";
import type { ModelRequest } from "./request.ts";
import type { UsageReader } from "./usage.ts";

export interface Target {
  readonly url: URL;
  readonly shape: ModelShape;
  /** The header that carries the key. */
  readonly header: readonly [name: string, value: string];
  readonly key: string;
  /** What is shown inside where an answer repeats the key. */
  readonly placeholder: string;
}

const SHOWN =
  /^(content-type|request-id|x-request-id|retry-after|x-should-retry|anthropic-ratelimit-[a-z-]+|x-ratelimit-[a-z-]+|openai-[a-z-]+)$/;

/** Resolves to the upstream's answer, its head read and its body not. */
export function send(
  target: Target,
  { method, path, headers, body }: ModelRequest,
  { signal, onSent }: { signal: AbortSignal; onSent: () => void },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const [name, value] = target.header;
  const address = new URL(target.url);
  const start = target.url.protocol === "https:" ? requestTls : requestPlain;
  const sent = start(
    {
      protocol: address.protocol,
      hostname: address.hostname.replace(/^\[|\]$/g, ""),
      port: address.port === "" ? undefined : Number(address.port),
      method,
      path: pathOf(target.url, path),
      headers: { ...headers, ...(body === undefined ? {} : { "content-length": body.length }), [name]: value },
      signal,
      // Whatever the environment of the server says.
      rejectUnauthorized: true,
      timeout: LIMITS.modelSilenceMs,
    },
    resolve,
  );
  sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
  sent.on("error", (error) => reject(new VivError("model_unreachable", `The model API can't be reached: ${reasonOf(error)}.`)));
  // Nothing is written before the host has shown who it is.
  sent.once("finish", onSent);
  sent.end(body);
  return promise;
}

export function pathOf(url: URL, path: string): string {
  return `${url.pathname.replace(/\/+$/, "")}${path}`;
}

/** The cause alone: messages of TLS and HTTP may repeat what was sent. */
function reasonOf(error: NodeJS.ErrnoException): string {
  return error.code ?? (error.message === "no answer in time" ? error.message : "the connection broke off");
}

/** Brings the answer in; resolves when all of it is passed on. */
export async function passOn(
  answer: IncomingMessage,
  response: ServerResponse,
  { target, usage, hideUsage }: { target: Target; usage: UsageReader; hideUsage: boolean },
): Promise<void> {
  const status = answer.statusCode ?? 502;
  // A redirect would carry the key to an address that the user did not configure.
  if (status >= 300 && status < 400) {
    answer.destroy();
    throw new VivError("model_unreachable", "The model API sends requests elsewhere.");
  }
  if (!["", "identity"].includes((answer.headers["content-encoding"] ?? "").toLowerCase())) {
    answer.destroy();
    throw new VivError("model_unreachable", "The model API packs its answers, though it was asked not to.");
  }
  const headers = Object.fromEntries(
    Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === "string" && SHOWN.test(name) ? [[name, clean(value, target)]] : [],
    ),
  );
  if (/^text\/event-stream\b/i.test(answer.headers["content-type"] ?? "")) {
    response.writeHead(status, { ...headers, "cache-control": "no-cache" });
    response.flushHeaders();
    await passEvents(answer, response, { target, usage, hideUsage });
    response.end();
    return;
  }
  const text = clean(await readWhole(answer), target);
  if (status < 300) usage.answer(parse(text), text.length);
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

async function passEvents(
  answer: IncomingMessage,
  response: ServerResponse,
  { target, usage, hideUsage }: { target: Target; usage: UsageReader; hideUsage: boolean },
): Promise<void> {
  const splitter = new EventSplitter(LIMITS.modelEventCharacters);
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    const events = splitter.add(chunk);
    if (events === undefined) throw new VivError("model_unreachable", "An event of the model API is too long.");
    for (const event of events) {
      const data = dataOf(event);
      if (data !== undefined) usage.event(data);
      if (hideUsage && isUsageAlone(data)) continue;
      if (!response.write(clean(event, target))) await drained(response);
    }
  }
  if (splitter.rest !== "") response.write(clean(splitter.rest, target));
}

/** The event that is there because the gateway asked for it: programs that did not look at its first choice, and there is none. */
function isUsageAlone(data: unknown): boolean {
  const { choices, usage } = (data ?? {}) as { choices?: unknown; usage?: unknown };
  return Array.isArray(choices) && choices.length === 0 && typeof usage === "object" && usage !== null;
}

function drained(response: ServerResponse): Promise<void> {
  // A client that has hung up never drains, but closes once.
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

function clean(text: string, { key, placeholder }: Target): string {
  return text.includes(key) ? text.replaceAll(key, placeholder) : text;
}

async function readWhole(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMITS.modelAnswerBytes) throw new VivError("model_unreachable", "The answer of the model API is too long.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Passed on as it is; what it took is estimated.
    return undefined;
  }
}
