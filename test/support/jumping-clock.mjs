// Loaded before a server (`--import`): its time of day is the machine's and so many milliseconds, which a file says. Timers of a minute,
// in which the server looks at the clock, take half a second; all others are as they are.
import { readFileSync } from "node:fs";

const LOOK_MS = 20;
const MINUTE_MS = 60_000;
const SHORT_MS = 500;
const RealDate = Date;
const realSetTimeout = globalThis.setTimeout;
let offset = 0;

function look() {
  try {
    offset = Number(readFileSync(process.env.TEST_CLOCK, "utf8")) || 0;
  } catch {
    offset = 0;
  }
}

look();
setInterval(look, LOOK_MS).unref();

globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + offset);
    else super(...given);
  }

  static now() {
    return RealDate.now() + offset;
  }
};

globalThis.setTimeout = Object.assign(
  (call, ms, ...given) => realSetTimeout(call, ms === MINUTE_MS ? SHORT_MS : ms, ...given),
  realSetTimeout,
);
