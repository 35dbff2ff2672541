/** What a page keeps of a run's events: entries to draw, and what the meters say. It grows up to a number of entries and of characters. */
import type { RunEvent } from "../../../src/base/schema/run.ts";

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

export interface CallEntry {
  readonly key: number;
  readonly call: Of<"tool_call">;
  readonly result: Of<"tool_result"> | undefined;
}
export interface EventEntry {
  readonly key: number;
  readonly event: RunEvent;
}
export type Entry = CallEntry | EventEntry;

export interface SeenRun {
  readonly entries: readonly Entry[];
  /** Whether the beginning was let go. */
  readonly cut: boolean;
  readonly contextTokens: number | null;
  /** Paths that the agent changed, as far as it told. */
  readonly paths: readonly string[];
}

/** A tab that is open for a day must not grow: what is more than this is let go, the oldest first. */
export const KEPT_ENTRIES = 50_000;
const KEPT_CHARACTERS = 32 * 1024 * 1024;
const KEPT_PATHS = 2_000;
const HIDDEN: ReadonlySet<RunEvent["type"]> = new Set(["usage", "turn", "command_output", "resumed", "tool_result"]);

export const NOTHING_SEEN: SeenRun = { entries: [], cut: false, contextTokens: null, paths: [] };

/** About as many characters as an entry holds. */
function weight(entry: Entry): number {
  if ("event" in entry) return "text" in entry.event && typeof entry.event.text === "string" ? entry.event.text.length : 100;
  const { input } = entry.call;
  return (typeof input === "string" ? input.length : JSON.stringify(input ?? null).length) + (entry.result?.output.length ?? 0);
}

export class RunLog {
  #entries: Entry[] = [];
  /** Calls without a result, by the call's name: where their entries are, counted from the first entry ever. */
  readonly #open = new Map<string, number>();
  #gone = 0;
  #characters = 0;
  #context: number | null = null;
  readonly #paths = new Set<string>();
  #pathList: readonly string[] = [];

  push(batch: readonly RunEvent[]): void {
    // A new array for each batch: what is drawn looks at the one before.
    this.#entries = [...this.#entries];
    for (const event of batch) this.#take(event);
    this.#trim();
  }

  seen(): SeenRun {
    return { entries: this.#entries, cut: this.#gone > 0, contextTokens: this.#context, paths: this.#pathList };
  }

  #take(event: RunEvent): void {
    if (event.type === "usage") this.#context = event.contextTokens ?? this.#context;
    if (event.type === "tool_result") return this.#finish(event);
    if (event.type === "file_change") this.#change(event.paths);
    if (HIDDEN.has(event.type)) return;
    if (event.type === "tool_call") {
      this.#open.set(event.call, this.#gone + this.#entries.length);
      this.#add({ key: event.sequence, call: event, result: undefined });
    } else this.#add({ key: event.sequence, event });
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#characters += weight(entry);
  }

  #finish(result: Of<"tool_result">): void {
    const at = (this.#open.get(result.call) ?? -1) - this.#gone;
    this.#open.delete(result.call);
    const entry = this.#entries[at];
    if (entry === undefined || !("call" in entry)) return;
    this.#entries[at] = { ...entry, result };
    this.#characters += result.output.length;
  }

  #change(paths: readonly string[]): void {
    for (const path of paths) if (this.#paths.size < KEPT_PATHS) this.#paths.add(path);
    this.#pathList = [...this.#paths];
  }

  #trim(): void {
    let drop = Math.max(0, this.#entries.length - KEPT_ENTRIES);
    for (const entry of this.#entries.slice(0, drop)) this.#characters -= weight(entry);
    for (let entry = this.#entries[drop]; entry !== undefined && this.#characters > KEPT_CHARACTERS; entry = this.#entries[drop]) {
      this.#characters -= weight(entry);
      drop += 1;
    }
    if (drop === 0) return;
    this.#entries = this.#entries.slice(drop);
    this.#gone += drop;
    for (const [call, at] of this.#open) if (at < this.#gone) this.#open.delete(call);
  }
}
