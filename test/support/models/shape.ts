/** What the scripted model says, and the port that each model API's way of saying it stands behind. */

export type Json = Readonly<Record<string, unknown>>;

export interface ToolCall {
  readonly name: string;
  /** Codex calls a tool of an MCP server by two names. */
  readonly namespace?: string;
  readonly input: Json;
}

export interface Usage {
  /** Without what was read from the cache. */
  readonly input: number;
  readonly output: number;
  /** The part of the output that is thought and not said, for the APIs that tell. */
  readonly thinking: number;
  readonly cacheRead: number;
}

/** One turn of the model, complete. */
export interface Turn {
  readonly id: string;
  readonly model: string;
  readonly thinking: string | undefined;
  readonly text: string | undefined;
  /** Each with an id of its own in the conversation. */
  readonly calls: readonly (ToolCall & { readonly id: string })[];
  readonly usage: Usage;
}

/** An event of a stream: its data, and the name that stands before it where the API names its events. */
export interface StreamEvent {
  readonly name?: string;
  readonly data: Json | string;
}

/** The way one model API writes requests, answers and errors. */
export interface Shape {
  /** How often the model spoke in the history that a request holds. */
  turnsIn(body: Json): number;
  toolsOf(body: Json): readonly string[];
  whole(turn: Turn): Json;
  stream(turn: Turn, body: Json): readonly StreamEvent[];
  error(status: number, message: string): Json;
}

export const objects = (value: unknown): readonly Json[] =>
  Array.isArray(value) ? value.filter((one): one is Json => typeof one === "object" && one !== null) : [];

export const namesOf = (tools: readonly Json[]): string[] => tools.map(({ name }) => name).filter((name) => typeof name === "string");

/** Entries of one turn may follow each other: a text, then the calls. */
export function groups(entries: readonly Json[], isModel: (entry: Json) => boolean): number {
  return entries.filter((entry, index) => isModel(entry) && !(index > 0 && isModel(entries[index - 1] ?? {}))).length;
}
