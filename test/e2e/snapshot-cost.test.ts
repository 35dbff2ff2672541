import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const ROUNDS = 5;
/** Files written between the two measurements, 8 KiB each. */
const FILES = 10_000;
/** Copying them would cost more than a second and 80 MiB. */
const MOST_TIMES = 5;
const MOST_BYTES = 16 * 1024 ** 2;

describe("snapshots on btrfs", needs("root", "btrfs"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  const median = (values: readonly number[]): number => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

  async function timed(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
  }

  /** Milliseconds of a snapshot, a rollback to it and a fork of it. */
  async function costs(sandbox: string, prefix: string): Promise<[number, number, number]> {
    const rounds: [number, number, number][] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `${prefix}-${round}`;
      const snapshot = await timed(() => server.client.call("createSnapshot", { sandbox, name }));
      const rollback = await timed(() => server.client.call("rollback", { sandbox, snapshot: name }));
      const forked = `${prefix}-fork-${round}`;
      const fork = await timed(() => server.client.call("forkSandbox", { sandbox, snapshot: name, names: [forked] }));
      await server.client.call("removeSandbox", { sandbox: forked });
      rounds.push([snapshot, rollback, fork]);
    }
    return [0, 1, 2].map((index) => median(rounds.map((round) => round[index] ?? 0))) as [number, number, number];
  }

  test("SNAP-4: cost as much with much data as with little, in time and in space", { timeout: 120_000 }, async () => {
    const { id } = await server.create({ name: "growing" });
    const few = await costs(id, "few");
    const written = await server.sh(id, `mkdir many && cd many && seq ${FILES} | while read n; do printf '%08192d' $n > $n; done; sync`);
    expect(written.end?.exitCode).toBe(0);
    const before = (await server.client.call("inspectSandbox", { sandbox: id })).use.diskBytes ?? 0;
    expect(before).toBeGreaterThan(FILES * 8_000);
    const many = await costs(id, "many");
    const after = (await server.client.call("inspectSandbox", { sandbox: id })).use.diskBytes ?? 0;
    expect(after - before).toBeLessThan(MOST_BYTES);
    for (const [index, cost] of many.entries()) expect(cost).toBeLessThan((few[index] ?? 0) * MOST_TIMES + 20);
  });
});
