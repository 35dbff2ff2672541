/** What only the start needed is given back: 5 MiB that the engine would else keep, since it collects when the heap grows, and that of a server that rests does not. */

const LOOK_EVERY_MS = 2_000;
/** Share of the time in which a server that rests works: it stands still for a tenth of a second meanwhile, so no caller is to wait. */
const RESTING = 0.05;

/** Once, at the first rest. Nothing happens where the engine was not told that it may be asked. */
export function collectAfterStart(): void {
  const collect = globalThis.gc;
  if (collect === undefined) return;
  let before = performance.eventLoopUtilization();
  const looking = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > RESTING) return;
    clearInterval(looking);
    // The only kind that also moves what is left together, and forgets code that ran once.
    collect({ type: "major", flavor: "last-resort" });
  }, LOOK_EVERY_MS).unref();
}
