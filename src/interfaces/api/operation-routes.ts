/**
 * The operations over HTTP: one route each, strict input, JSON out. They work on Node's own request and response, because objects of
 * the web's kind, made for each request, would cost more than most of the operations.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { CONTRACTS, type OperationName, type ParsedOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Engine } from "../operations/operations.ts";
import { sendError, sendJson } from "./answers.ts";
import { merge, parse, readJson, readQuery } from "./input.ts";

type Fields = Readonly<Record<string, string>>;
type Answer = (fields: Fields, incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/** One segment further in the paths of all routes. */
class Place {
  readonly #fixed = new Map<string, Place>();
  /** Below a segment that is a field's value. */
  #field: Place | undefined;
  readonly #ends = new Map<string, { readonly names: readonly string[]; readonly answer: Answer }>();

  add(segments: readonly string[], method: string, answer: Answer, names: readonly string[] = []): void {
    const [first, ...rest] = segments;
    if (first === undefined) return void this.#ends.set(method, { names, answer });
    const name = /^\{(\w+)\}$/.exec(first)?.[1];
    if (name !== undefined) return (this.#field ??= new Place()).add(rest, method, answer, [...names, name]);
    const next = this.#fixed.get(first) ?? new Place();
    this.#fixed.set(first, next);
    next.add(rest, method, answer, names);
  }

  /** A name of a route comes before a value in its place. */
  find(
    segments: readonly string[],
    method: string,
    at = 0,
    values: readonly string[] = [],
  ): { answer: Answer; fields: Fields } | undefined {
    const segment = segments[at];
    if (segment === undefined) {
      const end = this.#ends.get(method);
      return end && { answer: end.answer, fields: Object.fromEntries(end.names.map((name, index) => [name, values[index] ?? ""])) };
    }
    const fixed = this.#fixed.get(segment)?.find(segments, method, at + 1, values);
    if (fixed !== undefined || segment === "") return fixed;
    return this.#field?.find(segments, method, at + 1, [...values, segment]);
  }
}

export class OperationRoutes {
  readonly #root = new Place();

  /** `known` is told every error before it is sent. */
  constructor(engine: Engine, known: (error: unknown) => VivError) {
    for (const name of Object.keys(CONTRACTS) as OperationName[]) {
      const { method, path } = CONTRACTS[name];
      this.#root.add(path.slice(1).split("/"), method.toUpperCase(), answerOf(engine, name, known));
    }
  }

  /** Answers the request if it is for an operation; undefined if it is not. */
  take(path: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> | undefined {
    const segments = path.slice(1).split("/");
    const found = this.#root.find(path.includes("%") ? segments.map(decoded) : segments, incoming.method ?? "");
    return found?.answer(found.fields, incoming, outgoing);
  }
}

function answerOf<Name extends OperationName>(engine: Engine, name: Name, known: (error: unknown) => VivError): Answer {
  const { input: schema, output, status, method } = CONTRACTS[name];
  const read = method === "post" ? inBody : inQuery;
  return async (fields, incoming, outgoing) => {
    try {
      const input = parse(schema, await read(fields, incoming)) as ParsedOf<Name>;
      const result = await engine.operations[name](input, requestSignal(outgoing));
      // Parsing the answer leaves out what the contract does not name, such as the environment a row holds.
      sendJson(outgoing, status, JSON.stringify(output.parse(result)));
    } catch (error) {
      sendError(incoming, outgoing, known(error));
    }
  };
}

async function inQuery(fields: Fields, { url }: IncomingMessage): Promise<object> {
  return merge(fields, readQuery(url ?? ""));
}

async function inBody(fields: Fields, incoming: IncomingMessage): Promise<object> {
  const [extra] = Object.keys(readQuery(incoming.url ?? ""));
  if (extra !== undefined) throw new VivError("invalid_input", `Field "${extra}" belongs in the body.`);
  return merge(fields, await readJson(incoming));
}

/** Aborts when the client goes away before it has its answer. */
function requestSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableEnded) controller.abort(new VivError("cancelled", "The caller went away."));
  });
  return controller.signal;
}

/** What can't be decoded stands for itself. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
