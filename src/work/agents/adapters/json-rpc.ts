/** Messages of JSON-RPC, one a line, from a program that may write anything. */
import { parseObject, record, text, type Loose } from "../loose-json.ts";
import { lineOf } from "./wire.ts";

const MOST_ID_CHARACTERS = 256;

export type RpcMessage =
  /** Of the program: it waits for an answer. `id` is the JSON text of its id. */
  | { readonly kind: "request"; readonly id: string; readonly method: string; readonly params: Loose }
  | { readonly kind: "notification"; readonly method: string; readonly params: Loose }
  /** To a request of ours, whose ids are strings. */
  | { readonly kind: "answer"; readonly id: string; readonly result: Loose; readonly error: string | undefined };

export function rpcMessage(line: string): RpcMessage | undefined {
  const heard = parseObject(line);
  if (heard === undefined) return undefined;
  const { id, method } = heard;
  const hasId = typeof id === "number" || (typeof id === "string" && id.length <= MOST_ID_CHARACTERS);
  if (typeof method === "string") {
    const params = record(heard["params"]);
    return hasId ? { kind: "request", id: JSON.stringify(id), method, params } : { kind: "notification", method, params };
  }
  if (!hasId || (!("result" in heard) && !("error" in heard))) return undefined;
  const error = heard["error"] === undefined ? undefined : errorText(record(heard["error"]));
  return { kind: "answer", id: String(id), result: record(heard["result"]), error };
}

function errorText(error: Loose): string {
  const details = record(error["data"])["details"] ?? record(error["data"])["message"];
  const [message, more] = [text(error["message"]) || "an error without a text", text(details)];
  return more === "" || message.includes(more) ? message : `${message}: ${more}`;
}

/** How one kind of JSON-RPC writes its lines; Codex leaves the version out. */
export class RpcLines {
  readonly #always: object;

  constructor(always: object) {
    this.#always = always;
  }

  request(id: string, method: string, params: object): string {
    return lineOf({ ...this.#always, id, method, params });
  }

  notification(method: string, params?: object): string {
    return lineOf({ ...this.#always, method, ...(params === undefined ? {} : { params }) });
  }

  /** `id` as of `RpcMessage`. */
  result(id: string, result: object): string {
    return lineOf({ ...this.#always, id: JSON.parse(id) as string | number, result });
  }

  unknown(id: string, method: string): string {
    return lineOf({
      ...this.#always,
      id: JSON.parse(id) as string | number,
      error: { code: -32_601, message: `${method.slice(0, 256)} is not supported` },
    });
  }
}
