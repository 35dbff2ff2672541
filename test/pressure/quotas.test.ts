/** RS-11 of the threat list: a thousand of anything at once is bounded, each one too many is told so, and the server does not grow. */
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { heldBy, outcomesOf } from "../support/measure.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MANY = 1_000;
const MIB = 1024 ** 2;
/** What a run-time that collects its garbage late may be larger by; a leak of a tenth of a megabyte a call is over it. */
const SLACK_BYTES = 160 * MIB;

describe("a thousand at once", { ...needs("root", "btrfs"), timeout: 120_000 }, () => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start();
  });
  beforeEach(async () => {
    box = (await server.create({ limits: { memoryBytes: 1024 * MIB, processes: 1024 } })).id;
  });
  afterEach(async () => {
    await server.client.call("removeSandbox", { sandbox: box });
  });
  afterAll(async () => server?.remove());

  const times = <T>(count: number, work: (index: number) => Promise<T>): Promise<T>[] => Array.from({ length: count }, (_, at) => work(at));
  const start = () => server.client.call("runCommand", { sandbox: box, command: ["sleep", "1000"], background: true });
  const running = async () => (await server.client.call("listCommands", { sandbox: box })).commands;

  function rows(table: "commands" | "snapshots" | "events"): number {
    const database = new DatabaseSync(join(server.paths.home, "vivarium.db"), { readOnly: true });
    const { count } = database.prepare(`select count(*) as count from ${table}`).get() as { count: number };
    database.close();
    return count;
  }

  /** Runs the same storm again and again; only the first may make the server larger. */
  async function doesNotGrow(storm: () => Promise<unknown>): Promise<void> {
    await storm();
    const before = heldBy(server.pid);
    for (let round = 0; round < 2; round += 1) await storm();
    const after = await eventually(
      () => heldBy(server.pid),
      ({ descriptors }) => descriptors <= before.descriptors + 8,
    );
    expect(after.memoryBytes - before.memoryBytes).toBeLessThan(SLACK_BYTES);
  }

  test("RS-11: commands run up to the bound, the others are told so, and there is room again when they have ended", async () => {
    const most = LIMITS.maxRunningCommands;
    const refusal = `no_capacity: ${most} commands run in this sandbox already, which is the most.`;
    const before = rows("commands");
    expect(await outcomesOf(times(MANY, start))).toEqual({ done: most, [refusal]: MANY - most });
    expect(rows("commands") - before, "a refused command leaves no record").toBe(most);
    expect(await running()).toHaveLength(most);
    // Its files, its ports and its end are not what the commands use up.
    await server.client.call("statFile", { sandbox: box, path: "." });
    const events = rows("events");
    await doesNotGrow(() => outcomesOf(times(MANY, start)));
    expect(rows("events") - events).toBeLessThan(MANY);
    for (const { id } of await running()) await server.client.call("killCommand", { sandbox: box, command: id, signal: "KILL" });
    await eventually(running, (commands) => commands.length === 0);
    expect((await server.sh(box, "echo again")).stdout).toBe("again\n");
  });

  test("RS-11: a command that can't be started takes no place", async () => {
    const missing = () => server.client.call("runCommand", { sandbox: box, command: ["no-such-program"] });
    for (let round = 0; round < 3; round += 1) await outcomesOf(times(LIMITS.maxRunningCommands, missing));
    expect((await server.sh(box, "echo still")).stdout).toBe("still\n");
  });

  test("RS-11: callers attached to one command are bounded", async () => {
    const { id } = await start();
    const streams = await Promise.all(times(LIMITS.maxAttachedListeners, () => server.client.attach(box, id)));
    await expect(server.client.attach(box, id)).rejects.toMatchObject({ code: "no_capacity" });
    for (const stream of streams) stream.close();
    const again = await eventually(
      () => server.client.attach(box, id).catch(() => undefined),
      (stream) => stream !== undefined,
    );
    again?.close();
  });

  test("RS-11: snapshots are made up to the bound, and the sandbox can still be stopped with one", async () => {
    const most = LIMITS.maxSnapshots;
    const { name } = await server.client.call("inspectSandbox", { sandbox: box });
    const refusal = `no_capacity: Sandbox ${name} has ${most} snapshots, and ${most} are the most.`;
    const snapshot = () => server.client.call("createSnapshot", { sandbox: box });
    expect(await outcomesOf(times(MANY, snapshot))).toEqual({ done: most, [refusal]: MANY - most });
    expect(rows("snapshots")).toBe(most);
    await doesNotGrow(() => outcomesOf(times(MANY, snapshot)));
    expect(rows("snapshots")).toBe(most);
    expect((await server.client.call("stopSandbox", { sandbox: box })).state).toBe("completed");
  });

  test("RS-11: watches of files are open up to the bound, work, and leave nothing when they are closed", async () => {
    const most = LIMITS.maxFileWatches;
    const refusal = `no_capacity: ${most} watches of files are open in this sandbox already, which is the most.`;
    const storm = async (): Promise<void> => {
      const stop = new AbortController();
      let changes = 0;
      let refused = 0;
      const watch = async (): Promise<void> => {
        try {
          for await (const change of server.client.watchFiles(box, ".", { signal: stop.signal })) changes += change.path === "seen" ? 1 : 0;
        } catch (error) {
          refused += 1;
          throw error;
        }
      };
      const watches = times(MANY, watch);
      const outcomes = outcomesOf(watches);
      await eventually(
        () => refused,
        (count) => count === MANY - most,
      );
      // A watch that has begun tells of the change; each of them has to.
      await eventually(
        async () => (await server.sh(box, "touch seen; rm seen"), changes),
        (count) => count >= most,
      );
      stop.abort();
      expect(await outcomes).toEqual({ done: most, [refusal]: MANY - most });
    };
    await doesNotGrow(storm);
  });
});
