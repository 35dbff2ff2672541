/** Notifications of a real server: what it tells of, and what is left of them when it is killed on the way. */
import { readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { line } from "../support/inside.ts";
import { RequestCatcher } from "../support/push-service.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

describe("notifications of a server", needs("root"), () => {
  let server: TestServer;
  let catcher: RequestCatcher;
  let box: string;
  let number = 0;
  const ids = (): Set<unknown> => new Set(catcher.received.map(({ headers }) => headers["webhook-id"]));
  const bodies = (): Record<string, unknown>[] =>
    catcher.received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);
  const ask = async (): Promise<string> => {
    number += 1;
    const { approval } = await server.client.call("decideAction", {
      sandbox: box,
      action: line(`git push origin branch-${number}`),
      wait: 0,
    });
    return approval?.id ?? "";
  };
  const settled = () =>
    eventually(
      () => server.client.call("listNotifications", {}),
      (list) => list.deliveries.every(({ state }) => state !== "waiting"),
      20_000,
    );

  beforeAll(async () => {
    catcher = await RequestCatcher.start();
    const channels = { hook: { type: "webhook", url: `${catcher.origin}/hook` } };
    server = await TestServer.start({ config: { spares: false, notifications: { channels } } });
    box = (await server.create({ level: 2, name: "asker" })).id;
  });
  beforeEach(() => {
    catcher.received.length = 0;
  });
  afterEach(() => {
    catcher.answers.length = 0;
  });
  afterAll(async () => {
    await server.remove();
    await catcher.close();
  });

  test("WEB-2, POL-5: tell of a question without an open page, with its name and a link to the place", async () => {
    const id = await ask();
    await catcher.count(1);
    expect(bodies()[0]).toMatchObject({ kind: "question", title: "Question: asker", link: `/question/${id}`, project: server.project });
    await settled();
  });

  test("tell of an experiment once when it is done, and once when it has failed", async () => {
    const start = (command: string) =>
      server.client.call("startExperiment", { project: server.project, attempts: [{ command }], checks: ["test -f made"], keep: "none" });
    const good = await start("touch made");
    await catcher.count(1);
    const bad = await start("true");
    await catcher.count(2);
    await settled();
    expect(bodies()).toMatchObject([
      { kind: "done", link: `/experiment/${good.id}` },
      { kind: "failed", link: `/experiment/${bad.id}` },
    ]);
  });

  for (const point of ["notification.heard", "notification.begun"])
    test(`are sent once by the next server, where this one is killed at ${point}`, async () => {
      await server.arm(point);
      await ask().catch(() => undefined);
      await server.died();
      expect(catcher.received).toEqual([]);
      await server.up();
      await catcher.count(1);
      await settled();
      expect(catcher.received).toHaveLength(1);
    });

  test("are sent again with the same id where the server is killed between sending and noting it, so that the receiver can tell", async () => {
    await server.arm("notification.sent");
    await ask().catch(() => undefined);
    await server.died();
    expect(catcher.received).toHaveLength(1);
    await server.up();
    await catcher.count(2);
    await settled();
    expect(catcher.received).toHaveLength(2);
    expect(ids().size).toBe(1);
  });

  test("AP-33: never come from a project's own config", async () => {
    const file = join(server.project, "vivarium.json");
    writeFileSync(file, JSON.stringify({ notifications: { channels: { own: { type: "command", command: ["touch", "/tmp/owned"] } } } }));
    try {
      await expect(server.create({})).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining("notifications") });
    } finally {
      writeFileSync(file, "{}");
    }
    expect((await server.client.call("listNotifications", {})).channels.map(({ name }) => name)).toEqual(["hook"]);
  });

  test("are shown and tried by `viv notify`", async () => {
    // Beside this process, which is the receiver.
    const run = async (...words: string[]): Promise<{ code: unknown; out: string }> => {
      const child = startViv(server, ["notify", ...words]);
      const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close") as Promise<unknown[]>]);
      return { code, out };
    };
    expect(viv(server, ["notify"]).out).toMatch(/hook\s+webhook\s+question, done, failed/);
    expect(await run("--test")).toMatchObject({ code: 0, out: expect.stringContaining("hook: sent") as string });
    expect(bodies().at(-1)).toMatchObject({ kind: "test" });
    catcher.answers.push({ status: 404 });
    expect(await run("--test", "hook")).toMatchObject({ code: 1, out: expect.stringContaining("404") as string });
    expect(viv(server, ["notify", "--test", "none"]).code).toBe(2);
    expect(viv(server, ["notify", "--log"]).out).toContain("Question: asker");
  });

  test("keep the private key of web push in the state folder, and out of answers", async () => {
    const answer = JSON.stringify(await server.client.call("listNotifications", {}));
    const key = readFileSync(join(server.paths.home, "push-key"), "utf8").split("\n")[1] ?? "";
    expect(key.length).toBeGreaterThan(40);
    expect(answer).not.toContain(key);
  });
});
