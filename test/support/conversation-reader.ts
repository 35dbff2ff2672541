/** Views and searches a conversation some times, as a server does, and says how long that took and how much its memory grew. */
import { writeSync } from "node:fs";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { conversationsOn } from "./conversations.ts";

const [path = "", run = ""] = process.argv.slice(2);
const TIMES = 5;

const store = await openSqliteStore(path);
const conversations = conversationsOn(store);
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5);
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};
const viewMs: number[] = [];
const searchMs: number[] = [];
// The first also makes the vectors that are still missing.
await conversations.search("the first one", { run });
for (let time = 0; time < TIMES; time += 1) {
  viewMs.push(await timed(() => conversations.view(run, { budgetTokens: 20_000 })));
  searchMs.push(await timed(() => conversations.search("login page breaks with two threads", { run })));
}
clearInterval(watch);
const { tokens } = await conversations.sums(run);
const { entries } = await conversations.view(run, { budgetTokens: 20_000 });
const taken = entries.reduce((sum, entry) => sum + entry.tokens, 0);
writeSync(1, JSON.stringify({ tokens, taken, grownBytes: most - before, viewMs, searchMs }));
await conversations.close();
await store.close();
