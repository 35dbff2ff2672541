/** A thousand idle sandboxes on one server: what a further one takes then, and what each of them weighs. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { freeMemory } from "../src/sandbox/start/admission.ts";
import { compare, inBatches, pairCount, round, series, timed } from "./measure.ts";
import { descriptorsOf, hostFamilyOf, proportionalMib, residentMib } from "./processes.ts";
import type { Group, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const MANY = 1_000;
const MANY_QUICK = 100;
const AT_ONCE = 10;
const TRUE = "/bin/true";
const MEBIBYTE = 1024 ** 2;
/** What the server does after the last create must be over before idleness is measured. */
const SETTLE_MS = 5_000;
const IDLE_MS = 5_000;

export const thousandGroup: Group = {
  keys: ["many_1000"],
  async measure(settings) {
    settings.progress("many_1000");
    const many = settings.quick ? MANY_QUICK : MANY;
    // A person who wants so many says so in the config of the machine.
    const config = { ceilings: { sandboxes: many + 100 } };
    return { many_1000: await BenchServer.with((server) => measure(server, many, settings), config) };
  },
};

async function measure(server: BenchServer, many: number, { quick }: Settings): Promise<Measured> {
  const spawner = new Spawner();
  try {
    const { id } = await server.create();
    const family = hostFamilyOf(server.pid);
    const before = await both(server, spawner, id, quick);
    const weights = { memory: freeMemory().freeBytes, server: residentOf(family), descriptors: descriptorsIn(family) };
    const made: { id: string }[] = [];
    const fillMs = await timed(() => inBatches(Array.from({ length: many }), AT_ONCE, async () => void made.push(await server.create())));
    await delay(SETTLE_MS);
    const idle = await idleness(family);
    const after = await both(server, spawner, id, quick);
    const { processId } = await server.call("inspectSandbox", { sandbox: made.at(-1)?.id ?? "" });
    const more = {
      exec: round(after.exec.figure / before.exec.figure),
      sandboxes: many,
      filled_per_s: round(many / (fillMs / 1000)),
      process_1_mib: round(processId === null ? Number.NaN : proportionalMib(processId)),
      machine_mib_each: round((weights.memory - freeMemory().freeBytes) / MEBIBYTE / many),
      server_mib_each: round((residentOf(family) - weights.server) / many),
      descriptors_each: round((descriptorsIn(family) - weights.descriptors) / many),
      ...idle,
    };
    await inBatches([...made, { id }], AT_ONCE, (sandbox) => server.remove(sandbox.id));
    const raw = {
      "create, none idle": sideOf(before.create),
      "create, many idle": sideOf(after.create),
      "exec, none idle": sideOf(before.exec),
      "exec, many idle": sideOf(after.exec),
    };
    return { figure: round(after.create.figure / before.create.figure), raw, more };
  } finally {
    await spawner.close();
  }
}

/** Each against a plain spawn, in pairs: the two halves of this row are minutes apart, and the machine may be another then. */
async function both(server: BenchServer, spawner: Spawner, sandbox: string, quick: boolean): Promise<{ create: Measured; exec: Measured }> {
  const spawn = ["spawn", () => spawner.run([TRUE], { stdio: "pipe" })] as const;
  const exec = (): Promise<number> =>
    timed(async () => {
      const { end } = await server.call("runCommand", { sandbox, command: [TRUE] });
      if (end?.exitCode !== 0) throw new Error("/bin/true failed inside");
    });
  return {
    create: await compare({ pairs: pairCount(quick), sides: [["vivarium", () => server.createAndRemove()], spawn] }),
    exec: await compare({ pairs: pairCount(quick, 100), quietMs: 0, sides: [["vivarium", exec], spawn] }),
  };
}

function sideOf({ raw }: Measured): Measured["raw"][string] {
  return raw["vivarium"] ?? series([]);
}

/** What server and helper do while no caller asks: timers of all sandboxes show here. */
async function idleness(family: readonly number[]): Promise<{ idle_cpu_ms_per_s: number; idle_wakes_per_s: number }> {
  const [cpu, wakes] = [sumOf(family, cpuMs), sumOf(family, wakesOf)];
  await delay(IDLE_MS);
  const seconds = IDLE_MS / 1000;
  return {
    idle_cpu_ms_per_s: round((sumOf(family, cpuMs) - cpu) / seconds),
    idle_wakes_per_s: round((sumOf(family, wakesOf) - wakes) / seconds),
  };
}

function residentOf(family: readonly number[]): number {
  return sumOf(family, residentMib);
}

function descriptorsIn(family: readonly number[]): number {
  return sumOf(family, descriptorsOf);
}

function sumOf(family: readonly number[], value: (pid: number) => number): number {
  return family.reduce((sum, pid) => sum + value(pid), 0);
}

/** Of the main thread, by the scheduler's own count. */
function cpuMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

function wakesOf(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}
