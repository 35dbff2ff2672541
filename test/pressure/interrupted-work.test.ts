/** Work that something cut off: what is finished later, what goes on, and what is still known of it. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { eventually, TestServer } from "../support/server.ts";

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start();
});

afterAll(async () => {
  await server.remove();
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
