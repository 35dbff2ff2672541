/**
 * Processes of a sandbox, as /proc of the host shows them. Names and arguments are written by the processes themselves: they are text
 * and nothing else. Only files that the kernel makes are read; no link of a process (cwd, exe, root, fd) is followed.
 */
import { open } from "node:fs/promises";
import { uptime } from "node:os";
import { PAGE_BYTES, TICK_MS } from "./processes.ts";

export interface ListedProcess {
  /** As processes inside number it. */
  readonly pid: number;
  /** The same of its parent; 0 for a process that has none inside. */
  readonly parent: number;
  /** The kernel's short name of it. */
  readonly name: string;
  /** Program and arguments, as far as they were read; empty for one that has ended. */
  readonly command: readonly string[];
  /** The kernel's letter for what it does: R, S, D, T, Z. */
  readonly state: string;
  readonly startedAt: Date;
  readonly cpuMs: number;
  readonly memoryBytes: number;
  readonly threads: number;
}

interface Seen {
  readonly shown: ListedProcess;
  readonly hostPid: number;
  readonly hostParent: number;
  /** Whether it is a copy of its parent that has run no program of its own. */
  readonly isCopy: boolean;
}

/** PF_FORKNOEXEC of the kernel. */
const FORKED_ONLY = 0x40;
const STATUS_BYTES = 4096;
const AT_ONCE = 8;

/** The beginning of a file that the kernel makes; undefined when its process has ended. */
async function beginning(path: string, mostBytes: number): Promise<Buffer | undefined> {
  try {
    await using file = await open(path, "r");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0);
    return buffer.subarray(0, bytesRead);
  } catch {
    return undefined;
  }
}

async function look(hostPid: number, argumentBytes: number): Promise<Seen | undefined> {
  const [stat, status, line] = await Promise.all([
    beginning(`/proc/${hostPid}/stat`, STATUS_BYTES),
    beginning(`/proc/${hostPid}/status`, STATUS_BYTES),
    beginning(`/proc/${hostPid}/cmdline`, argumentBytes),
  ]);
  if (stat === undefined || status === undefined) return undefined;
  const text = stat.toString();
  // The name in parentheses may hold anything, also parentheses.
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  const number = (index: number): number => Number(fields[index] ?? 0);
  // A line of the name can't look like this one: the kernel writes a newline in a name as \n.
  const numbers = /^NSpid:\t(.+)$/m.exec(status.toString())?.[1]?.split("\t") ?? [];
  return {
    hostPid,
    hostParent: number(1),
    isCopy: (number(6) & FORKED_ONLY) !== 0,
    shown: {
      pid: Number(numbers.at(-1) ?? 0),
      parent: 0,
      name: text.slice(text.indexOf("(") + 1, end),
      command: line === undefined || line.length === 0 ? [] : line.toString().replace(/\0+$/, "").split("\0"),
      state: fields[0] ?? "",
      startedAt: new Date(Date.now() - uptime() * 1000 + number(19) * TICK_MS),
      cpuMs: (number(11) + number(12)) * TICK_MS,
      memoryBytes: number(21) * PAGE_BYTES,
      threads: number(17),
    },
  };
}

interface ListRequest {
  /** Process 1 of the sandbox, as the host numbers it. It is not listed, nor are copies of it that wait for work. */
  readonly first: number;
  /** Numbers of the processes that belong to the sandbox now. */
  readonly members: () => readonly number[];
  readonly most: number;
  /** Of each one's arguments, at most so many bytes. */
  readonly argumentBytes: number;
}

/** Process 1 and what it keeps waiting, which are not listed. */
const NOT_LISTED = 2;

export async function listProcesses({ first, members, most, argumentBytes }: ListRequest): Promise<ListedProcess[]> {
  const asked = members().slice(0, most + NOT_LISTED);
  const seen: Seen[] = [];
  for (let index = 0; index < asked.length; index += AT_ONCE) {
    const some = await Promise.all(asked.slice(index, index + AT_ONCE).map((pid) => look(pid, argumentBytes)));
    seen.push(...some.filter((one) => one !== undefined));
  }
  // A number that was given to another process meanwhile, perhaps one of reality, is no longer among them.
  const still = new Set(members());
  const own = await beginning(`/proc/${first}/cmdline`, argumentBytes);
  const waits = (one: Seen): boolean => one.isCopy && one.hostParent === first && own?.equals(lineOf(one)) === true;
  const inside = new Map([[first, 1], ...seen.map(({ hostPid, shown }) => [hostPid, shown.pid] as const)]);
  return seen
    .filter((one) => one.hostPid !== first && still.has(one.hostPid) && !waits(one))
    .map(({ shown, hostParent }) => ({ ...shown, parent: inside.get(hostParent) ?? 0 }))
    .slice(0, most)
    .toSorted((one, other) => one.pid - other.pid);
}

/** As cmdline has it. */
function lineOf({ shown }: Seen): Buffer {
  return Buffer.from(shown.command.map((word) => `${word}\0`).join(""));
}
