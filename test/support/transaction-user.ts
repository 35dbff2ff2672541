/** Run by transaction-late.test.ts: a user who writes a file again and again, in place or by renames, until told to stop. Prints the last text. */
import { renameSync, writeFileSync } from "node:fs";

const [file = "", how = ""] = process.argv.slice(2);
let count = 0;
let stopped = false;
process.stdin.on("data", () => {
  stopped = true;
});

function write(): void {
  for (let round = 0; round < 20; round++) {
    count += 1;
    if (how === "in place") writeFileSync(file, `user ${count}`);
    else {
      writeFileSync(`${file}.tmp`, `user ${count}`);
      renameSync(`${file}.tmp`, file);
    }
  }
  if (!stopped) setImmediate(write);
  else {
    process.stdin.destroy();
    process.stdout.write(`user ${count}`);
  }
}
write();
