/**
 * One of several processes that take, give back and clear the same few ranges, for the test of `IdRanges`. Arguments: a folder, the
 * owner and its state folder. Prints how often a range that it took was another's at the same time, and how many it took.
 */
import { closeSync, openSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { IdRanges } from "../../src/base/host/id-ranges.ts";

const RANGES = [0, 1, 2];
const ROUNDS = 120;

const [crowd = "", owner = "", home = ""] = process.argv.slice(2);
const common = { isFree: () => true, shared: true, notes: join(crowd, "notes") };
const own = new IdRanges({ ...common, owner, home });
/** Leaves notes whose folder is gone, for all to clear. */
const gone = new IdRanges({ ...common, owner: `gone-${owner}`, home: join(crowd, "gone") });
let twice = 0;
let taken = 0;
for (let round = 0; round < ROUNDS; round += 1) {
  const range = RANGES[round % RANGES.length] ?? 0;
  if (round % 4 === 0) gone.take(range);
  own.keepOnly(new Set());
  if (!own.take(range)) continue;
  taken += 1;
  const held = join(crowd, "held", String(range));
  try {
    closeSync(openSync(held, "wx"));
    unlinkSync(held);
  } catch {
    twice += 1;
  }
  own.release(range);
}
process.stdout.write(`${twice} ${taken}`);
