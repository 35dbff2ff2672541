/** What the siblings of a sandbox notice when it storms disk, clock, timers and processors. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mountOf, readMounts } from "../../src/base/host/mounts.ts";
import type { Limits } from "../../src/base/schema/sandbox.ts";
import { attackHost, attackInside, compile, outcomes } from "../support/attacks.ts";
import { percentile, timesUntil, timesOf, writtenTo } from "../support/measure.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MIB = 1024 ** 2;
const SMALL: Limits = { cpus: 1, memoryBytes: 256 * MIB, diskBytes: 1024 * MIB, processes: 64 };

/** What a sibling may have to wait for in the worst twentieth of cases. Quiet, each takes a few milliseconds. */
const EXEC_MS = 500;
const WRITE_MS = 500;
/** Waits for the disk itself, which nothing divides between sandboxes: bounded, and no more than that. */
const SYNCED_WRITE_MS = 3_000;

const BURN = "(timeout 2 sh -c 'while :; do :; done' & timeout 2 sh -c 'while :; do :; done' & wait)";
/** The most of one processor that half of one may look like. */
const HALF = 0.65;

describe("a storm in one sandbox", needs("root", "btrfs", "compiler"), () => {
  let server: TestServer;
  let box: string;
  let sibling: string;

  beforeAll(async () => {
    server = await TestServer.start();
    compile(server.project, "clocks");
    box = (await server.create({ limits: SMALL })).id;
    sibling = (await server.create({ limits: SMALL })).id;
  });
  afterAll(async () => server?.remove());

  /** What a sibling waits for in the best `share` of cases. */
  async function siblingWaits(share: number): Promise<{ exec: number; write: number; synced: number }> {
    const exec = await timesOf(40, () => server.sh(sibling, "true"));
    const write = await timesOf(40, (at) => server.client.writeFile(sibling, `small${at}`, Readable.from([Buffer.from("small")])));
    const synced = await timesOf(20, () => server.sh(sibling, "dd if=/dev/zero of=synced bs=4k count=1 conv=fsync 2>&1"));
    return { exec: percentile(exec, share), write: percentile(write, share), synced: percentile(synced, share) };
  }

  /** Runs a command in the background for as long as `work` takes. */
  async function during<T>(line: string, work: () => Promise<T>): Promise<T> {
    const { id } = await server.sh(box, line, { background: true, user: "root" });
    try {
      return await work();
    } finally {
      await server.client.call("killCommand", { sandbox: box, command: id, signal: "KILL" });
    }
  }

  test("RS-09: of writes and syncs keeps its siblings waiting no longer than a stated time", async () => {
    const pool = mountOf(join(server.paths.home, "pool/volumes"), readMounts());
    const device = pool?.source.match(/^\/dev\/loop(\d+)$/)?.[1] ?? "";
    const written = (): number => writtenTo(`7:${device}`);
    const begin = written();
    const quiet = await siblingWaits(0.5);
    const bySibling = written() - begin;
    const line = `
      for n in 1 2 3 4; do (while :; do dd if=/dev/zero of=storm$n bs=1M count=100 conv=fsync,notrunc; done) & done
      for n in 1 2 3 4; do (while :; do dd if=/dev/urandom of=sync$n bs=4k count=1000 oflag=dsync conv=notrunc; done) & done
      wait`;
    const stormy = await during(`(${line}) 2>/dev/null`, async () => {
      await eventually(written, (bytes) => bytes - begin - bySibling > 64 * MIB);
      return siblingWaits(0.95);
    });
    const inStorm = written() - begin - bySibling;
    // It is a storm, and it falls on the disk that the sibling writes to.
    expect(inStorm).toBeGreaterThan(64 * MIB);
    expect(inStorm).toBeGreaterThan(10 * bySibling);
    expect(stormy.synced).toBeGreaterThan(quiet.synced);
    expect(stormy.exec).toBeLessThan(EXEC_MS);
    expect(stormy.write).toBeLessThan(WRITE_MS);
    expect(stormy.synced).toBeLessThan(SYNCED_WRITE_MS);
  });

  test("RS-13: sets no clock, wakes no machine and credits no entropy, where root outside may", async () => {
    const offset = (): number => Date.now() - (performance.timeOrigin + performance.now());
    const before = offset();
    const harmless = ["set-nothing", "wake-machine", "credit-entropy"];
    const inside = await attackInside(server, box, "clocks", "set-clock", "slew-clock", ...harmless);
    expect(Object.values(inside)).toEqual(Array.from({ length: 5 }, () => "EPERM"));
    expect(Math.abs(offset() - before)).toBeLessThan(1_000);
    expect(Object.values(attackHost(join(server.project, "clocks"), ...harmless))).toEqual(["done", "done", "done"]);
  });

  test("RS-13: of timers, random numbers and clock reads does not reach its siblings or the server", async () => {
    const clocks = join(server.project, "clocks");
    const four = Array.from({ length: 4 }, () => server.client.call("runCommand", { sandbox: box, command: [clocks, "storm=3"] }));
    const answers = timesUntil(Promise.all(four), () => server.client.call("listSandboxes", {}));
    const waits = await timesOf(60, () => server.sh(sibling, "true"));
    expect(percentile(waits, 0.95)).toBeLessThan(EXEC_MS);
    expect(percentile(await answers, 0.95)).toBeLessThan(EXEC_MS);
    const inside = (await Promise.all(four)).map(({ stdout }) => countsOf(stdout));
    // The same program outside says that this is a storm: it fires far more often than any program needs.
    const alone = spawn(clocks, ["storm=1"], { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = (await once(alone.stdout, "data")) as [Buffer];
    for (const [fired, random, reads] of [...inside, countsOf(said.toString())]) {
      expect(fired).toBeGreaterThan(10_000);
      expect(random).toBeGreaterThan(65_536);
      expect(reads).toBeGreaterThan(1_000);
    }
  });

  test("RS-08 and LIM-1: of programs that never rest burns no more than its share of the processors", { timeout: 180_000 }, async () => {
    const half = await server.create({ limits: { ...SMALL, cpus: 0.5 } });
    const burnInside = async (): Promise<number> => {
      const { end } = await server.sh(half.id, `renice -n -20 $$; ${BURN}; true`);
      const share = (end?.cpuMs ?? 0) / (end?.wallMs ?? 1);
      expect(share).toBeLessThan(HALF);
      return share;
    };
    // It takes its share, and what nothing limits takes more, once the machine has that to give.
    await eventually(burnInside, (share) => share > 0.3, 60_000);
    await eventually(burnOutside, (free) => free > HALF, 60_000);
    await server.client.call("removeSandbox", { sandbox: half.id });
  });
});

function countsOf(text: string): [fired: number, random: number, reads: number] {
  const [fired = 0, random = 0, reads = 0] = (outcomes(text)["storm"] ?? "").split(" ").map(Number);
  return [fired, random, reads];
}

/** The share of one processor that the burn takes where nothing limits it. */
function burnOutside(): number {
  const began = performance.now();
  const { stdout } = spawnSync("sh", ["-c", `${BURN}; times`], { encoding: "utf8" });
  const ofChildren = stdout.trim().split("\n").at(-1) ?? "";
  const seconds = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest),
    0,
  );
  return (seconds * 1000) / (performance.now() - began);
}
