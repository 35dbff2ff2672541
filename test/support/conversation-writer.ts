/** Adds turns to a conversation, each with an event in one change, and says the last number of each once it is acknowledged. */
import { writeSync } from "node:fs";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { conversationsOn, madeUp } from "./conversations.ts";
import { Randomness } from "./randomness.ts";

const [path = "", run = "", tokens = ""] = process.argv.slice(2);
const BATCH = 20;

const store = await openSqliteStore(path);
const conversations = conversationsOn(store);
const said = madeUp(new Randomness(1), Infinity);
let written = 0;
while (written < Number(tokens)) {
  const batch = Array.from({ length: BATCH }, () => said.next().value).filter((one) => one !== undefined);
  const last = await store.change(async (change) => {
    await conversations.append(change, { run, project: "/p" }, batch);
    const sequence = (await change.conversations.sums(run))?.records ?? 0;
    await change.event("server.started", null, { sequence });
    return sequence;
  });
  writeSync(1, `${last}\n`);
  if (last % 1_000 < BATCH) written = (await conversations.sums(run)).tokens;
}
await conversations.close();
await store.close();
