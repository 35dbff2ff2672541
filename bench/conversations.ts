/** What a view and a search of a very long conversation take, as a caller of the server sees it, and how much its memory grows. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { newId } from "../src/base/schema/ids.ts";
import { openSqliteStore } from "../src/base/store/sqlite/sqlite.ts";
import { conversationsOn, madeUp } from "../test/support/conversations.ts";
import { Randomness } from "../test/support/randomness.ts";
import { round, series, timed } from "./measure.ts";
import { residentMib } from "./processes.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";

const TOKENS = 1_000_000;
const BUDGET = 20_000;
const BATCH = 200;
const ROUNDS = 30;
const MOST_MIB = 100;
const LOOK_MS = 5;

export const conversationGroup: Group = {
  keys: ["context_ms"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      progress("context_ms: a million tokens");
      const run = newId("run");
      await write(join(server.paths.home, "vivarium.db"), run, server.project);
      const before = residentMib(server.pid);
      const memory = new PeakMemory(server.pid);
      const search = { run, search: "login page breaks with two threads" };
      await server.call("readContext", search);
      const views: number[] = [];
      const searches: number[] = [];
      progress("context_ms: views and searches");
      for (let index = 0; index < (quick ? 5 : ROUNDS); index += 1) {
        views.push(await timed(() => server.call("readContext", { run, budget: BUDGET })));
        searches.push(await timed(() => server.call("readContext", search)));
      }
      const grown = (await memory.end()) - before;
      if (grown > MOST_MIB) throw new Error(`the server's memory grew by ${round(grown)} MiB`);
      const both = series(views.map((ms, index) => ms + (searches[index] ?? 0)));
      const raw = { both, view: series(views), search: series(searches) };
      return { context_ms: { figure: both.median, raw, more: { grown_mib: round(grown) } } };
    });
  },
};

/** Beside the server, which finds the records as if it had written them. */
async function write(database: string, run: string, project: string): Promise<void> {
  const store = await openSqliteStore(database);
  const conversations = conversationsOn(store);
  const said = madeUp(new Randomness(1), Infinity);
  for (let tokens = 0; tokens < TOKENS; tokens = (await conversations.sums(run)).tokens) {
    const batch = Array.from({ length: BATCH }, () => said.next().value).filter((one) => one !== undefined);
    await store.change((change) => conversations.append(change, { run, project }, batch));
  }
  await conversations.close();
  await store.close();
}

class PeakMemory {
  readonly #ended = new AbortController();
  readonly #peak: Promise<number>;

  constructor(pid: number) {
    this.#peak = this.#watch(pid);
  }

  /** In MiB. */
  end(): Promise<number> {
    this.#ended.abort();
    return this.#peak;
  }

  async #watch(pid: number): Promise<number> {
    let most = residentMib(pid);
    while (!this.#ended.signal.aborted) {
      await delay(LOOK_MS);
      most = Math.max(most, residentMib(pid));
    }
    return most;
  }
}
