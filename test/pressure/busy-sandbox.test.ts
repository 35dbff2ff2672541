/** A sandbox that is hard at work: it is paused all the same, and the server answers others meanwhile. */
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

  test("BOX-5: that prints byte by byte keeps no other command waiting", async () => {
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
});
