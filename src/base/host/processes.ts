/** Processes below another one, as /proc shows them. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface ProcessUse {
  readonly pid: number;
  readonly memoryBytes: number;
  readonly cpuMs: number;
  readonly threads: number;
}

export const PAGE_BYTES = 4096;
/** Ticks of /proc are hundredths of a second on every Linux that Node runs on. */
export const TICK_MS = 10;

interface Stat extends ProcessUse {
  readonly parent: number;
}

function readStat(pid: string): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // It ended between the listing and the look.
    return undefined;
  }
  // The name in parentheses may hold anything, also parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const number = (index: number): number => Number(fields[index] ?? 0);
  return {
    pid: Number(pid),
    parent: number(1),
    cpuMs: (number(11) + number(12)) * TICK_MS,
    threads: number(17),
    memoryBytes: number(21) * PAGE_BYTES,
  };
}

export function processExists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Anything but "no such process" means that it is there and not ours to signal.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Whether it has not ended. One that has may be listed for long: not every process 1 buries its orphans. */
export function isRunning(pid: number): boolean {
  if (!processExists(pid)) return false;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^ [ZX] /.test(text.slice(text.lastIndexOf(")") + 1));
  } catch (error) {
    // Gone meanwhile, or a system without /proc, where it exists as far as is known.
    return (error as NodeJS.ErrnoException).code !== "ESRCH" && processExists(pid);
  }
}

/** Whether it waits for something that no signal interrupts, which is nearly always a disk. */
export function isWaitingForDisk(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 1).startsWith(" D ");
  } catch {
    // It has ended, or there is no /proc: either way it waits for nothing that is known.
    return false;
  }
}

/** How often a process is looked at in the time that it may sleep. */
const LOOKS = 10;

/** Calls once when all threads of a process have slept for so long without using the processor. Returns how to stop looking. */
export function whenAsleep(pid: number | undefined, forMs: number, call: () => void): () => void {
  let before: number | undefined;
  let looks = 0;
  const timer = setInterval(() => {
    const cpuMs = pid === undefined ? undefined : asleepAt(pid);
    looks = cpuMs !== undefined && cpuMs === before ? looks + 1 : 0;
    before = cpuMs;
    if (looks < LOOKS) return;
    clearInterval(timer);
    call();
  }, forMs / LOOKS).unref();
  return () => clearInterval(timer);
}

/** The processor time that a process has used if all its threads sleep so that a signal would wake them; undefined otherwise. */
function asleepAt(pid: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"));
    if (!threads.every((text) => text.slice(text.lastIndexOf(")") + 1).startsWith(" S "))) return undefined;
  } catch {
    // It has ended.
    return undefined;
  }
  return readStat(String(pid))?.cpuMs;
}

/** Process 1 of every pid namespace inside this one that holds a folder open. */
export function firstProcessesHolding(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        if (!/^NSpid:\t\d+\t(\d+\t)*1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return false;
        return readdirSync(`/proc/${pid}/fd`).some((number) => readlinkSync(`/proc/${pid}/fd/${number}`) === folder);
      } catch {
        // It has ended, or is not ours to look at.
        return false;
      }
    })
    .map(Number);
}

/** All processes below `root`, without it. Orphans of a pid namespace belong to its process 1, so none escapes. */
export function processesBelow(root: number): ProcessUse[] {
  const children = new Map<number, Stat[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat === undefined) continue;
    const siblings = children.get(stat.parent);
    if (siblings === undefined) children.set(stat.parent, [stat]);
    else siblings.push(stat);
  }
  const found: ProcessUse[] = [];
  const queue = [root];
  for (let parent = queue.pop(); parent !== undefined; parent = queue.pop()) {
    for (const child of children.get(parent) ?? []) {
      found.push(child);
      queue.push(child.pid);
    }
  }
  return found;
}
