/** What sandboxes weigh: one that idles, a hundred at once, and the server that holds them. */
import { setTimeout as delay } from "node:timers/promises";
import { inBatches, pairCount, round, series, timed } from "./measure.ts";
import { hostFamilyOf, namesakesOf, proportionalMib, residentMib } from "./processes.ts";
import type { Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";

const MANY = 100;
const AT_ONCE = 10;
const BURSTS = 3;
const BETWEEN_LOOKS_MS = 100;

export const manyGroup: Group = {
  keys: ["idle_mib", "burst_100", "server_mib"],
  async measure(settings) {
    const outcomes: Partial<Record<Key, Measured>> = {};
    for (const [key, measure] of [
      ["idle_mib", idle],
      ["burst_100", burst],
      ["server_mib", memoryOfServer],
    ] as const) {
      if (!settings.wanted.has(key)) continue;
      settings.progress(key);
      // Each on a server of its own: memory of one row must not be the leftovers of another.
      // Memory as users have it: the published program, whose text is shorter and needs no types taken out of it.
      outcomes[key] = await BenchServer.with((server) => measure(server, settings), {}, { isPublished: key === "server_mib" });
    }
    return outcomes;
  },
};

/** One sandbox at a time, so that nothing is shared with a sibling; host processes that came with it count too. */
async function idle(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const samples: number[] = [];
  let processes = 0;
  for (let index = 0; index < pairCount(quick); index += 1) {
    const before = new Set(hostFamilyOf(server.pid));
    const { id } = await server.create();
    const { processId } = await server.call("inspectSandbox", { sandbox: id });
    if (processId === null) throw new Error("the sandbox has no process 1");
    const own = new Set([...namesakesOf(processId), ...hostFamilyOf(server.pid).filter((pid) => !before.has(pid))]);
    const mib = [...own].reduce((sum, pid) => sum + proportionalMib(pid), 0);
    if (mib === 0) throw new Error("the memory of the sandbox can't be read");
    samples.push(mib);
    processes = own.size;
    await server.remove(id);
  }
  const raw = { pss: series(samples, "MiB") };
  return { figure: raw.pss.median, raw, more: { processes } };
}

async function burst(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const latencies: number[] = [];
  const rates: number[] = [];
  for (let index = 0; index < (quick ? 1 : BURSTS); index += 1) {
    const made: string[] = [];
    const one = async (): Promise<void> => {
      const ms = await timed(async () => void made.push((await server.create()).id));
      latencies.push(ms);
    };
    let results: PromiseSettledResult<void>[] = [];
    const ms = await timed(async () => (results = await Promise.allSettled(Array.from({ length: MANY }, one))));
    const failed = results.filter((result) => result.status === "rejected");
    if (failed[0] !== undefined) throw new Error(`${failed.length} creates failed: ${String(failed[0].reason)}`);
    rates.push(made.length / (ms / 1000));
    await inBatches(made, AT_ONCE, (id) => server.remove(id));
  }
  const raw = { latency: series(latencies), rate: series(rates, "sandboxes per second") };
  return { figure: raw.rate.median, raw, more: { p95_ms: raw.latency.p95 } };
}

/** The helper of the server counts as the server: it is there because of it. */
async function memoryOfServer(server: BenchServer, { quick }: Settings): Promise<Measured> {
  const own = hostFamilyOf(server.pid);
  const sandboxes = Array.from({ length: MANY }, (_, index) => index);
  await inBatches(sandboxes, AT_ONCE, () => server.create());
  const totals: number[] = [];
  const alone: number[] = [];
  for (let index = 0; index < pairCount(quick); index += 1) {
    totals.push(own.reduce((sum, pid) => sum + residentMib(pid), 0));
    alone.push(residentMib(server.pid));
    // Looks spread over a few seconds see the garbage collector at work.
    await delay(BETWEEN_LOOKS_MS);
  }
  const raw = { "server and helper": series(totals, "MiB"), server: series(alone, "MiB") };
  return { figure: round(raw["server and helper"].median), raw, more: { sandboxes: MANY } };
}
