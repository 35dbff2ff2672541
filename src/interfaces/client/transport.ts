/** What a client needs of a way to a server. Programs in Node have one over sockets, pages in a browser one over fetch; all else is the same. */
import { isErrorCode, VivError, type ErrorBody } from "../../base/schema/errors.ts";

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An answer, whatever its status. */
export interface Answer<Body> {
  readonly status: number;
  readonly statusText: string;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Body;
}

export interface ChannelListener {
  message(data: string | Uint8Array): void;
  close(code: number): void;
}

/** A WebSocket, which is silent until there is a listener. */
export interface Channel {
  readonly isOpen: boolean;
  /** Subprotocol that the other side chose. */
  readonly protocol: string;
  /** Resolves at once while the other side keeps up, and when it has caught up otherwise. */
  send(data: string | Uint8Array): Promise<void>;
  /** Makes the other side wait. A browser can't: there, messages go on. */
  pause(): void;
  resume(): void;
  /** With unread input this breaks the connection off, since that input would delay it. */
  close(): void;
  listen(listener: ChannelListener): void;
}

export interface Transport<Body extends AsyncIterable<Uint8Array> = AsyncIterable<Uint8Array>> {
  /** Resolves with the answer of the server or of a port inside. */
  send(request: HttpRequest): Promise<Answer<Body>>;
  /** Resolves with an answer of success; other answers are thrown as the error they carry. */
  request(request: HttpRequest): Promise<Answer<Body>>;
  json<Value>(request: HttpRequest): Promise<Value>;
  /** Resolves once the server has switched. */
  webSocket(path: string, protocols?: readonly string[]): Promise<Channel>;
  close(): void;
}

/** Longest error body that is read. */
export const MAX_ERROR_BYTES = 64 * 1024;

/** As servers of all versions say it. */
const NO_ROUTE = /^There is no such (?:WebSocket )?route\.$/;

export async function readText(body: AsyncIterable<Uint8Array>, limit = Number.POSITIVE_INFINITY): Promise<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) break;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** All of it, as one. */
export async function readBytes(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const { error } = value;
  return (
    typeof error === "object" &&
    error !== null &&
    "code" in error &&
    typeof error.code === "string" &&
    isErrorCode(error.code) &&
    "message" in error
  );
}

/** The error that an answer carries. */
export function errorOf(text: string, status: number): VivError {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (!isErrorBody(body)) return new VivError("server_unreachable", `The server answered with status ${status}.`);
  return body.error.code === "not_found" && NO_ROUTE.test(body.error.message) ? otherVersion() : VivError.fromBody(body);
}

/** A client only asks for routes that the server of its own version has. */
function otherVersion(): VivError {
  return new VivError("unsupported", "The running server is of another version of viv, which can't do this.", {
    remedy: "Run `viv down`, then the command again: it starts a server of this version.",
  });
}

export function unreachable(error: unknown): VivError {
  if (error instanceof VivError) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  if (cause.name === "AbortError" || cause.name === "TimeoutError") return new VivError("cancelled", "The call was cancelled.", { cause });
  return new VivError("server_unreachable", `The server cannot be reached: ${cause.message}.`, { cause });
}
