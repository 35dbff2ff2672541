/** Run by transaction-late.test.ts: a user who, at every line of input, writes a file many times in a row, then prints the last text. */
import { renameSync, writeFileSync } from "node:fs";

const WRITES = 150;
const [file = "", how = ""] = process.argv.slice(2);
let count = 0;

process.stdin.on("data", () => {
  for (let round = 0; round < WRITES; round++) {
    count += 1;
    if (how === "in place") writeFileSync(file, `user ${count}`);
    else {
      writeFileSync(`${file}.tmp`, `user ${count}`);
      renameSync(`${file}.tmp`, file);
    }
  }
  process.stdout.write(`user ${count}`);
});
process.stdout.write("ready");
