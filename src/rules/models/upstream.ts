/** Sends a request on with the real key, and brings the answer in without it. */
import { request as requestPlain, type IncomingMessage, type ServerResponse } from "node:http";
import { request as requestTls } from "node:https";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ModelShape } from "../../base/schema/model.ts";
import { dataOf, EventSplitter } from "./events.ts";
import { wordsIn } from "./offered.ts";
import { Refusal } from "./refusal.ts";
import type { ModelRequest } from "./request.ts";
import { modelAnswer, type ModelAnswer } from "./retry-after.ts";
import type { UsageReader } from "./usage.ts";

export interface Target {
  /** As `models` names the provider. */
  readonly name: string;
  readonly url: URL;
  readonly shape: ModelShape;
  /** The header that carries the key. */
  readonly header: readonly [name: string, value: string];
  readonly key: string;
  /** What is shown inside where an answer repeats the key. */
  readonly placeholder: string;
  /** What `anthropic-beta` has to name, too. */
  readonly beta: string | undefined;
  /** What programs inside are told if the provider does not take the login. */
  readonly refusedLogin: string;
}

const SHOWN =
  /^(content-type|request-id|x-request-id|retry-after|retry-after-ms|x-should-retry|anthropic-ratelimit-[a-z-]+|x-ratelimit-[a-z-]+|openai-[a-z-]+)$/;

/** Codes that Node has for certificates which it does not take. */
const CERTIFICATE_ERROR = /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS|HOSTNAME_MISMATCH|INVALID_CA/;

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
      headers: { ...headers, ...betaOf(target, headers), ...(body === undefined ? {} : { "content-length": body.length }), [name]: value },
      signal,
      // Whatever the environment of the server says.
      rejectUnauthorized: true,
      timeout: LIMITS.modelSilenceMs,
    },
    resolve,
  );
  sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
  sent.on("error", (error) => reject(unreachable(error)));
  // Nothing is written before the host has shown who it is.
  sent.once("finish", onSent);
  sent.end(body);
  return promise;
}

function betaOf({ beta }: Target, headers: Readonly<Record<string, string>>): Record<string, string> {
  const named = headers["anthropic-beta"] ?? "";
  if (beta === undefined || named.split(",").some((one) => one.trim() === beta)) return {};
  return { "anthropic-beta": named === "" ? beta : `${named},${beta}` };
}

export function pathOf(url: URL, path: string): string {
  return `${url.pathname.replace(/\/+$/, "")}${path}`;
}

/** A certificate that is not trusted stays so until the user does something; a connection may come back by itself. */
function unreachable(error: NodeJS.ErrnoException): Refusal {
  const kind = CERTIFICATE_ERROR.test(error.code ?? "") ? "provider_unusable" : "provider_unreachable";
  return new Refusal(kind, `The model API can't be reached: ${reasonOf(error)}.`, error);
}

/** The cause alone: messages of TLS and HTTP may repeat what was sent. */
function reasonOf(error: NodeJS.ErrnoException): string {
  return error.code ?? (error.message === "no answer in time" ? error.message : "the connection broke off");
}

interface PassingOn {
  readonly target: Target;
  readonly usage: UsageReader;
  readonly hideUsage: boolean;
  readonly model: string | undefined;
  /** Called before the first byte of the answer is passed on. */
  readonly onAnswer: (answer: ModelAnswer) => void;
}

/** Brings the answer in; resolves when all of it is passed on. */
export async function passOn(
  answer: IncomingMessage,
  response: ServerResponse,
  { target, usage, hideUsage, model, onAnswer }: PassingOn,
): Promise<void> {
  const status = answer.statusCode ?? 502;
  // A redirect would carry the key to an address that the user did not configure.
  if (status >= 300 && status < 400) {
    answer.destroy();
    throw new Refusal("provider_unusable", "The model API sends requests elsewhere.");
  }
  if (!["", "identity"].includes((answer.headers["content-encoding"] ?? "").toLowerCase())) {
    answer.destroy();
    throw new Refusal("provider_unusable", "The model API packs its answers, though it was asked not to.");
  }
  const headers = Object.fromEntries(
    Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === "string" && SHOWN.test(name) ? [[name, clean(value, target)]] : [],
    ),
  );
  if (/^text\/event-stream\b/i.test(answer.headers["content-type"] ?? "")) {
    response.writeHead(status, { ...headers, "cache-control": "no-cache" });
    response.flushHeaders();
    onAnswer(modelAnswer(status, answer.headers, "", Date.now()));
    await passEvents(answer, response, { target, usage, hideUsage });
    response.end();
    return;
  }
  const text = await readText(answer, target);
  requireTaken(status, text, target, model);
  if (status < 300) usage.answer(parse(text), text.length);
  onAnswer(modelAnswer(status, answer.headers, text, Date.now()));
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

/** The whole answer to a call of the server itself. What is no success is a refusal. */
export async function readAnswer(
  answer: IncomingMessage,
  { target, usage, model }: { target: Target; usage: UsageReader; model: string },
): Promise<unknown> {
  const status = answer.statusCode ?? 502;
  const text = await readText(answer, target);
  requireTaken(status, text, target, model);
  if (status >= 300) throw new Refusal("provider_unusable", `The model API answered with status ${status}.`);
  const value = parse(text);
  usage.answer(value, text.length);
  return value;
}

/** All of an answer, without the key. */
export async function readText(answer: IncomingMessage, target: Target): Promise<string> {
  return clean(await readWhole(answer), target);
}

/** Login and model: an agent that tries again with the same ones gets the same answer. */
function requireTaken(status: number, text: string, { name, refusedLogin }: Target, model: string | undefined): void {
  if (isLoginRefused(status, text)) throw new Refusal("login_refused", refusedLogin);
  if (model === undefined || !isModelRefused(status, text)) return;
  const words = wordsIn(text);
  throw new Refusal("model_refused", `${name} refused the model ${model}${words === undefined ? "." : `: ${words}`}`);
}

/** 404 with a word about models, which may also be about a file that a request names; OpenAI's code comes with other statuses, too. */
function isModelRefused(status: number, text: string): boolean {
  if (status === 404) return /\bmodels?\b/i.test(wordsIn(text) ?? "");
  return (
    (status === 400 || status === 403) && (text.includes('"model_not_found"') || /\b(invalid|unknown) model\b/i.test(wordsIn(text) ?? ""))
  );
}

/** 401 at every provider. Beside that, Google answers 400 for a key that it does not know, and Anthropic 403 for a token that was revoked. */
function isLoginRefused(status: number, text: string): boolean {
  if (status === 401) return true;
  if (status === 400) return text.includes("API_KEY_INVALID");
  return status === 403 && /OAuth token (has been |has |was )?(revoked|expired)/i.test(text);
}

async function passEvents(
  answer: IncomingMessage,
  response: ServerResponse,
  { target, usage, hideUsage }: { target: Target; usage: UsageReader; hideUsage: boolean },
): Promise<void> {
  const splitter = new EventSplitter(LIMITS.modelEventCharacters);
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    const events = splitter.add(chunk);
    if (events === undefined) throw new Refusal("provider_unusable", "An event of the model API is too long.");
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
    if (bytes > LIMITS.modelAnswerBytes) throw new Refusal("provider_unusable", "The answer of the model API is too long.");
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
