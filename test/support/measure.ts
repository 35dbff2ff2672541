/** How long things take, and what a server holds. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds of each of so many runs, one after the other. */
export async function timesOf(count: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const began = performance.now();
    await work(index);
    times.push(performance.now() - began);
  }
  return times;
}

/** Milliseconds of each run until something else is over, with a short rest between them. */
export async function timesUntil(over: Promise<unknown>, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const stop = new AbortController();
  const end = (): void => stop.abort();
  over.then(end, end);
  while (!stop.signal.aborted) {
    times.push(...(await timesOf(1, work)));
    await delay(2);
  }
  return times;
}

/** The value that the given share of all lies below. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** How much longer than alone a program takes on this machine now, since others want its processors, too: 1 when none do. */
export function contention(): number {
  const began = performance.now();
  const before = process.cpuUsage();
  const spent = (): number => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  while (spent() < 200) continue;
  return Math.max(1, (performance.now() - began) / spent());
}

/** What a process holds: resident memory and open descriptors. */
export function heldBy(pid: number): { memoryBytes: number; descriptors: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return {
    memoryBytes: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/** Bytes written to a block device since the machine started, by its number as "major:minor". */
export function writtenTo(device: string): number {
  const [major, minor] = device.split(":");
  const line = readFileSync("/proc/diskstats", "utf8")
    .split("\n")
    .map((text) => text.trim().split(/\s+/))
    .find((fields) => fields[0] === major && fields[1] === minor);
  return Number(line?.[9] ?? Number.NaN) * 512;
}

/** How results of many calls at once are spread: "done", or the code and sentence of the error. */
export async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const call of await Promise.allSettled(calls)) {
    const key = call.status === "fulfilled" ? "done" : describe(call.reason);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

function describe(error: unknown): string {
  return error instanceof Error && "code" in error ? `${String(error.code)}: ${error.message}` : String(error);
}
