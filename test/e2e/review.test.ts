/** What went wrong once between two operations. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { eventually, TestServer } from "../support/server.ts";

/** Quiet, an answer takes a few milliseconds. */
const LAG_MS = 1_000;

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start();
});

afterAll(async () => {
  await server.remove();
});

describe("a busy sandbox", needs("root"), () => {
  test("BOX-10: stands still each time it is paused, also while a shell waits for the child it just made", async () => {
    const box = await server.create();
    await server.sh(box.id, "while :; do date > /dev/null; done", { background: true });
    for (let round = 0; round < 100; round += 1) {
      expect((await server.client.call("pauseSandbox", { sandbox: box.id })).state).toBe("paused");
      expect((await server.client.call("resumeSandbox", { sandbox: box.id })).state).toBe("running");
    }
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("BOX-5: that prints byte by byte keeps nobody else waiting", async () => {
    const box = await server.create();
    let ended = false;
    const printed = server.sh(box.id, "dd if=/dev/zero bs=1 count=1000000 2>/dev/null").finally(() => (ended = true));
    const worst = await eventually(
      async () => {
        const asked = performance.now();
        await server.client.call("listSandboxes", {});
        return { ms: performance.now() - asked, ended };
      },
      (last) => last.ended || last.ms > LAG_MS,
      60_000,
    );
    expect(worst.ms).toBeLessThan(LAG_MS);
    expect(await printed).toMatchObject({ truncated: false, end: { exitCode: 0, outputBytes: 1_000_000 } });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("SNAP-3: keeps the time it was promised over a rollback", async () => {
    const box = await server.create({ idleMs: 60_000 });
    const snapshot = await server.client.call("createSnapshot", { sandbox: box.id });
    const { expiresAt } = await server.client.call("extendSandbox", { sandbox: box.id, by: "2h" });
    await server.client.call("rollback", { sandbox: box.id, snapshot: snapshot.id });
    const now = await server.client.call("inspectSandbox", { sandbox: box.id });
    expect(Math.abs(Date.parse(now.expiresAt ?? "") - Date.parse(expiresAt ?? ""))).toBeLessThan(5_000);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});

describe("what broke off", needs("root"), () => {
  test("F-14: is finished by the reconciler without a restart", async () => {
    const [stopped, removed] = [await server.create(), await server.create()];
    await server.sh(stopped.id, "echo work > kept");
    // Rows as a full disk leaves them after the first step of a stop and of a removal.
    const database = new DatabaseSync(join(server.paths.home, "vivarium.db"), { timeout: 5_000 });
    const put = (id: string, state: string, patch: object): void => {
      const { body } = database.prepare("select body from sandboxes where id = ?").get(id) as { body: string };
      database
        .prepare("update sandboxes set state = ?, body = ? where id = ?")
        .run(state, JSON.stringify({ ...JSON.parse(body), ...patch }), id);
    };
    put(stopped.id, "completing", { state: "completing" });
    put(removed.id, "running", { removing: true });
    database.close();
    await server.client.call("prune", {});
    const { events } = await server.client.call("listEvents", { sandbox: stopped.id, limit: 1000 });
    expect(events.map(({ type }) => type)).toContain("sandbox.completed");
    const gone = await server.client.call("listEvents", { sandbox: removed.id, limit: 1000 });
    expect(gone.events.map(({ type }) => type)).toContain("sandbox.removed");
    expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).not.toContain(removed.id);
  });

  test("SNAP-4: is no sandbox whose rollback was refused because the snapshot is gone: it goes on as it was", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo work > kept");
    const snapshot = await server.client.call("createSnapshot", { sandbox: box.id });
    execFileSync("btrfs", ["subvolume", "delete", join(server.paths.home, "pool/snapshots", `${snapshot.id}@${box.id}`)]);
    await expect(server.client.call("rollback", { sandbox: box.id, snapshot: snapshot.id })).rejects.toMatchObject({
      code: "snapshot_damaged",
    });
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "running" });
    expect((await server.sh(box.id, "cat kept")).stdout).toBe("work\n");
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("work\n");
    for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
  });

  test("BOX-9: is no fork whose project is gone in reality", async () => {
    const other = await TestServer.start();
    try {
      const box = await other.create();
      rmSync(other.project, { recursive: true });
      const { sandboxes } = await other.client.call("forkSandbox", { sandbox: box.id });
      expect((await other.sh(sandboxes[0]?.id ?? "", "cat hello.txt")).stdout).toBe("hello\n");
    } finally {
      await other.remove();
    }
  });
});

describe("mask layers", needs("root"), () => {
  test("CLONE-6: go when no sandbox has them mounted, and stay where one has", async () => {
    const other = await TestServer.start();
    try {
      const folder = join(other.paths.home, "masks");
      const box = await other.create();
      const [mine] = readdirSync(folder);
      mkdirSync(join(folder, "0".repeat(32)));
      await other.kill();
      await other.up();
      expect(readdirSync(folder)).toEqual([mine]);
      expect((await other.sh(box.id, "cat /etc/shadow-; cat hello.txt")).stdout).toBe("hello\n");
    } finally {
      await other.remove();
    }
  });
});

describe("a create with a command", needs("root"), () => {
  test("BOX-2: leaves no sandbox behind that its caller does not hear of", async () => {
    const before = (await server.client.call("listSandboxes", {})).sandboxes.length;
    await expect(server.create({ run: { command: ["/no/such/program"] } })).rejects.toMatchObject({ code: "command_not_found" });
    expect((await server.client.call("listSandboxes", {})).sandboxes).toHaveLength(before);
  });
});

describe("a command that ended while no server listened", needs("root"), () => {
  test("F-13: keeps its exit code, also when its sandbox ended after it", async () => {
    const other = await TestServer.start();
    try {
      const box = await other.create();
      const command = await other.sh(box.id, "while [ ! -e go ]; do sleep 0.05; done; exit 3", { background: true });
      const { processId } = await other.client.call("inspectSandbox", { sandbox: box.id });
      await other.sh(box.id, "(sleep 0.5; touch go) >/dev/null 2>&1 &");
      await other.kill();
      const log = join(other.paths.home, "logs", box.id, `${command.id}.log`);
      await eventually(
        () => readFileSync(log).includes("code=3"),
        (ended) => ended,
      );
      process.kill(processId ?? 0, "SIGKILL");
      await other.up();
      const now = await other.client.call("inspectCommand", { sandbox: box.id, command: command.id });
      expect(now.end).toMatchObject({ cause: "exit", exitCode: 3 });
    } finally {
      await other.remove();
    }
  });
});
