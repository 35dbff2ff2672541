/** A request from inside as data, and the answer to it. Everything in a request is hostile. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import { GATEWAY_PORT } from "../../base/schema/gateway.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { isNestedDeeply } from "../../base/schema/nesting.ts";

export interface Request {
  readonly method: string;
  /** Parts of the path. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
  /** Undefined where there is none. */
  readonly body: unknown;
  /** Bytes of the body as it came. */
  readonly bodyBytes: number;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

const HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"].flatMap((host) => [host, `${host}:${GATEWAY_PORT}`]));
const RETRY_AFTER = /\b(\d+) ms\b/;

/** A page in a browser inside must not speak for the agent. */
export function refuseStrangers(message: IncomingMessage): void {
  if (message.headers.origin !== undefined || !HOSTS.has((message.headers.host ?? "").toLowerCase()))
    throw new VivError("forbidden_origin", "The gateway is for programs inside the sandbox.", {
      remedy: `Call http://localhost:${GATEWAY_PORT} without an Origin.`,
    });
}

export async function readRequest(message: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const { path, query } = address(message.url ?? "/");
  return { method: message.method ?? "GET", path, query, ...(await readBody(message)), signal };
}

function address(url: string): Pick<Request, "path" | "query"> {
  try {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const path = pathname.split("/").filter(Boolean).map(decodeURIComponent);
    return { path, query: Object.fromEntries(searchParams) };
  } catch (error) {
    throw new VivError("invalid_input", "The address of the request is malformed.", { cause: error });
  }
}

async function readBody(message: IncomingMessage): Promise<Pick<Request, "body" | "bodyBytes">> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMITS.gatewayBodyBytes)
      throw new VivError("too_large", `A body has at most ${LIMITS.gatewayBodyBytes} bytes.`, { remedy: "Send less." });
    chunks.push(chunk);
  }
  if (bytes === 0) return { body: undefined, bodyBytes: 0 };
  const text = Buffer.concat(chunks).toString("utf8");
  if (isNestedDeeply(text, LIMITS.gatewayJsonDepth)) throw new VivError("invalid_input", "The body is nested too deeply.");
  try {
    return { body: JSON.parse(text), bodyBytes: bytes };
  } catch (error) {
    throw new VivError("invalid_input", "The body is not JSON.", { cause: error });
  }
}

/** The input as its schema wants it. */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new VivError("invalid_input", `${issue?.path.map(String).join(".") || "The input"}: ${issue?.message ?? "not valid"}.`);
}

export function send(response: ServerResponse, { status, body }: Reply, headers: Readonly<Record<string, string>> = {}): void {
  if (response.destroyed || response.headersSent) return;
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers });
  response.end(text);
}

/** The connection ends with it: what of the request was not read would be taken for the next one. */
export function refuse(response: ServerResponse, error: VivError): void {
  const waitMs = Number(RETRY_AFTER.exec(error.message)?.[1] ?? 0);
  const later = error.code === "rate_limited" ? { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) } : {};
  send(response, { status: ERRORS[error.code].status, body: error.toBody() }, { connection: "close", ...later });
}
