/** What went wrong once between two operations. */
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

describe("a busy sandbox", needs("root"), () => {
  test("BOX-10: stands still each time it is paused, also while a shell waits for the child it just made", async () => {
    const box = await server.create();
    await server.sh(box.id, "while :; do date > /dev/null; done", { background: true });
    for (let round = 0; round < 100; round += 1) {
      await server.client.call("pauseSandbox", { sandbox: box.id });
      await server.client.call("resumeSandbox", { sandbox: box.id });
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
      (last) => last.ended || last.ms > 500,
      60_000,
    );
    expect(worst.ms).toBeLessThan(500);
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
