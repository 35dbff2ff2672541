/** What many short lives of sandboxes leave on the machine: nothing. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Limits } from "../../src/base/schema/sandbox.ts";
import { everythingOf } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

const MIB = 1024 ** 2;
const SMALL: Limits = { cpus: 1, memoryBytes: 256 * MIB, diskBytes: 1024 * MIB, processes: 64 };

describe("many short lives", needs("root", "btrfs"), () => {
  const lives = rounds(60, 1000);
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(async () => server?.remove());

  /** One life, of one of several kinds. */
  async function life(round: number): Promise<void> {
    const { id } = await server.create(round % 2 === 0 ? {} : { name: `named-${round}`, limits: SMALL });
    const sandboxes = [id];
    if (round % 3 === 0) await server.sh(id, "echo x > /etc/x; sleep 1000 & echo y > y");
    if (round % 5 === 0) await server.client.call("createSnapshot", { sandbox: id, name: "kept" });
    if (round % 10 === 0) await server.client.call("rollback", { sandbox: id, snapshot: "kept" });
    if (round % 10 === 5) sandboxes.push(...(await server.client.call("forkSandbox", { sandbox: id })).sandboxes.map((fork) => fork.id));
    if (round % 4 === 0) await server.client.call("stopSandbox", { sandbox: id });
    for (const sandbox of sandboxes) await server.client.call("removeSandbox", { sandbox });
  }

  /** With nothing left to sweep up: the server has to have cleared everything by itself. */
  async function remains(): Promise<ReturnType<typeof everythingOf>> {
    const report = await server.client.call("prune", { all: true });
    expect(report.leftovers).toEqual([]);
    return everythingOf(server);
  }

  test(
    `F-09: ${lives} of them leave no mount, group, namespace, loop device, subvolume, descriptor or file`,
    async () => {
      for (let round = 0; round < 10; round += 1) await life(round);
      const before = await remains();
      const { id } = await server.create();
      const alive = everythingOf(server);
      // Each of these is counted: one living sandbox shows in all of them.
      for (const kind of ["groups", "insides", "volumes", "files"] as const) expect(alive[kind], kind).toBeGreaterThan(before[kind]);
      await server.client.call("removeSandbox", { sandbox: id });
      for (let round = 0; round < lives; round += 1) await life(round);
      await remains();
      await eventually(
        () => everythingOf(server),
        (after) => Object.entries(after).every(([kind, count]) => count <= before[kind as keyof typeof after]),
      );
    },
    60_000 + lives * 1_000,
  );
});
