/** Writes one change after the other and says each number once it is acknowledged, until it is killed. */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { aSandboxRow } from "./rows.ts";

// By itself it is written at the end, and this is killed.
flushCompileCache();
const [path = "", from = "0"] = process.argv.slice(2);
const store = await openSqliteStore(path);
const row = aSandboxRow();
for (let number = Number(from); ; number += 1) {
  await store.change(async (change) => {
    await change.sandboxes.put({ ...row, id: `sbx${number}`, name: `n${number}` });
    await change.event("sandbox.running", `sbx${number}`, { number });
  });
  writeSync(1, `${number}\n`);
}
