/**
 * Programs that an agent left running: processes that began while one of its commands ran, and are there after the command has ended.
 * What an agent starts for itself, such as servers of its tools, begins at other times and is none of them.
 */
import type { RunEvent } from "../../base/schema/run.ts";
import type { ListedProcess } from "../../base/host/process-list.ts";

/** A command may run before the server has read that it was called. */
const EARLIER_MS = 500;
/** The clock by which a process began is read anew each time. */
const SAME_MS = 1_000;
/** When a process began is known to the hundredth of a second. */
const EXACT_MS = 20;
/** Calls that are remembered between two looks. */
const MOST_CALLS = 500;

export class BackgroundPrograms {
  /** When commands that run now were called. */
  readonly #open = new Map<string, number>();
  /** Commands that ended since the last look. */
  #ended: { readonly from: number; readonly to: number }[] = [];
  /** When they began, by process. */
  #known = new Map<number, number>();

  /** What began before the agent said its first word is the agent itself. */
  #since = Number.NEGATIVE_INFINITY;

  heard(event: RunEvent): void {
    const at = Date.parse(event.at);
    if (event.type === "started") this.#since = at - EXACT_MS;
    if (event.type === "tool_call" && event.kind === "command" && this.#open.size < MOST_CALLS) this.#open.set(event.call, at);
    if (event.type === "turn") this.#open.clear();
    if (event.type !== "tool_result") return;
    const from = this.#open.get(event.call);
    this.#open.delete(event.call);
    if (from !== undefined) this.#ended = [...this.#ended.slice(-MOST_CALLS), { from: Math.max(this.#since, from - EARLIER_MS), to: at }];
  }

  /** How many there are, by all processes of now. */
  count(processes: readonly Pick<ListedProcess, "pid" | "startedAt">[]): number {
    const begun = processes.map(({ pid, startedAt }) => ({ pid, startedAt: startedAt.getTime() }));
    const isLeft = ({ pid, startedAt }: (typeof begun)[number]): boolean =>
      Math.abs(startedAt - (this.#known.get(pid) ?? Number.POSITIVE_INFINITY)) < SAME_MS ||
      this.#ended.some(({ from, to }) => startedAt >= from && startedAt <= to);
    this.#known = new Map(begun.filter(isLeft).map(({ pid, startedAt }) => [pid, startedAt]));
    this.#ended = [];
    return this.#known.size;
  }
}
