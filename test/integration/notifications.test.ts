/** Notifications on their way: kept, tried again, told once, and bounded, whatever their receivers do. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UserConfig } from "../../src/base/schema/config.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { Approval } from "../../src/base/schema/approval.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { ExperimentRow, FiringRow } from "../../src/base/store/rows.ts";
import type { Store } from "../../src/base/store/store.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { Sessions } from "../../src/rules/sessions/sessions.ts";
import { Notifications } from "../../src/work/notifications/notifications.ts";
import { PushBrowsers } from "../../src/work/notifications/push/browsers.ts";
import { PushEndpoints } from "../../src/work/notifications/push/endpoint.ts";
import { ServerKey } from "../../src/work/notifications/push/server-key.ts";
import type { NewNotification } from "../../src/work/notifications/told.ts";
import { Ways } from "../../src/work/notifications/ways.ts";
import { PushReceiver, RequestCatcher } from "../support/push-service.ts";
import { eventually } from "../support/server.ts";

const PAUSE_MS = 40;
const quiet = { info: () => undefined, warn: () => undefined };

let folder: string;
let store: Store;
let audit: Audit;
let sessions: Sessions;
let catcher: RequestCatcher;
let config: Record<string, unknown>;
let open: { notifications: Notifications; browsers: PushBrowsers }[];
let clock: { aheadMs: number };

async function start(): Promise<{ notifications: Notifications; browsers: PushBrowsers }> {
  const secrets = await Secrets.open(store, audit, new SealingKey(join(folder, "secrets-key")));
  const settings = () => UserConfig.parse({ notifications: config }).notifications;
  const endpoints = new PushEndpoints(
    () => settings().pushServices,
    async () => [],
  );
  const key = new ServerKey(join(folder, "push-key"));
  const browsers = new PushBrowsers({ store, sessions, key, endpoints, contact: () => "mailto:me@example.com" });
  const ways = new Ways({ config: settings, secrets, env: { PATH: process.env["PATH"] ?? "" }, browsers });
  const urlOf = (link: string): string => `http://127.0.0.1:7411${link}`;
  const notifications = await Notifications.open({ store, log: quiet, ways, urlOf, reach: () => undefined, firstPauseMs: PAUSE_MS });
  const made = { notifications, browsers };
  open.push(made);
  return made;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "viv-notifications-"));
  store = await openSqliteStore(join(folder, "vivarium.db"));
  audit = new Audit(store, join(folder, "anchor"), () => undefined);
  clock = { aheadMs: 0 };
  sessions = await Sessions.open(store, audit, () => Date.now() + clock.aheadMs);
  catcher = await RequestCatcher.start();
  config = { channels: { hook: { type: "webhook", url: catcher.origin } } };
  open = [];
});

afterEach(async () => {
  for (const { notifications } of open) await notifications.close();
  await catcher.close();
  await audit.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

async function ask(changes: Partial<Approval> = {}): Promise<Approval> {
  const now = Date.now();
  const approval: Approval = {
    id: newId("approval"),
    state: "waiting",
    sandbox: newId("sandbox"),
    sandboxName: "brave-otter",
    project: "/srv/project",
    kind: "command",
    target: "git push origin main",
    hash: "h",
    rule: null,
    reason: "It leaves the machine.",
    always: null,
    askedAt: new Date(now).toISOString(),
    deadline: new Date(now + 600_000).toISOString(),
    answeredAt: null,
    answeredBy: null,
    scope: null,
    ...changes,
  };
  await store.change(async (change) => {
    await change.approvals.put(approval);
    await change.event("approval.asked", approval.sandbox, { approval: approval.id });
  });
  return approval;
}

const bodies = (): Record<string, unknown>[] => catcher.received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);
const told = (changes: Partial<NewNotification> = {}): NewNotification => ({
  kind: "done",
  title: "Done: it",
  text: "All checks pass.",
  link: "/run/run1",
  project: null,
  run: null,
  ...changes,
});

describe("a notification (WEB-2)", () => {
  test("POL-5: tells of a question with its name, one sentence and a link to the place", async () => {
    await start();
    const { id } = await ask();
    await catcher.count(1);
    expect(bodies()[0]).toMatchObject({
      kind: "question",
      title: "Question: brave-otter",
      text: "It asks to run git push origin main: It leaves the machine.",
      link: `/question/${id}`,
      url: `http://127.0.0.1:7411/question/${id}`,
    });
  });

  test("AP-32: is one line of plain text, whatever the sandbox wrote", async () => {
    await start();
    const target = `x\r\nBcc: evil@example.com\u001b[31m\u202egnp.exe ${"long ".repeat(500)}`;
    await ask({ target, sandboxName: "a\nb", reason: "token=ghp_0123456789abcdefghijABCDEFGHIJ012345 was in it." });
    await catcher.count(1);
    const { title, text } = bodies()[0] as { title: string; text: string };
    expect(title).toBe("Question: a b");
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(Array.from(text).length).toBeLessThanOrEqual(LIMITS.notificationTextCharacters);
    expect(text).not.toContain("ghp_");
  });

  test("is tried again with growing pauses until it gets through, and not after that", async () => {
    catcher.answers.push({ status: 500 }, { status: 503 }, { status: 429 });
    const { notifications } = await start();
    await notifications.notify(told());
    await catcher.count(4);
    const { deliveries } = await eventually(
      () => notifications.list(),
      (list) => list.deliveries[0]?.state === "sent",
    );
    expect(deliveries).toMatchObject([{ tries: 4, channel: "hook", reason: null }]);
    expect(new Set(catcher.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(catcher.received).toHaveLength(4);
  });

  test("is given up where its receiver refuses it for good, and the list says why", async () => {
    catcher.answers.push({ status: 403 });
    const { notifications } = await start();
    await notifications.notify(told());
    const { channels } = await eventually(
      () => notifications.list(),
      (list) => list.deliveries[0]?.state === "failed",
    );
    expect(channels).toMatchObject([{ name: "hook", trouble: expect.stringContaining("403"), waiting: 0 }]);
  });

  test("is told once for one key, also when it is told again later", async () => {
    const { notifications } = await start();
    await Promise.all([1, 2, 3].map(() => notifications.notify(told({ key: "the same" }))));
    await notifications.notify(told({ key: "another" }));
    await catcher.count(2);
    await notifications.notify(told({ key: "the same" }));
    await notifications.notify(told({ key: "a third" }));
    await catcher.count(3);
    expect(catcher.received).toHaveLength(3);
  });

  test("is not sent once what it asks for was answered", async () => {
    catcher.answers.push({ status: 500 });
    const { notifications } = await start();
    const approval = await ask();
    await catcher.count(1);
    await store.change((change) => change.approvals.put({ ...approval, state: "approved" }));
    const { deliveries } = await eventually(
      () => notifications.list(),
      (list) => list.deliveries[0]?.state === "dropped",
    );
    expect(deliveries[0]?.reason).toContain("settled");
    expect(catcher.received).toHaveLength(1);
  });

  test("is made of kinds that the config names, for each channel by itself", async () => {
    const other = await RequestCatcher.start();
    config = {
      on: ["failed"],
      channels: { hook: { type: "webhook", url: catcher.origin, on: ["question"] }, other: { type: "webhook", url: other.origin } },
    };
    const { notifications } = await start();
    await notifications.notify(told({ kind: "done" }));
    await notifications.notify(told({ kind: "failed" }));
    await notifications.notify(told({ kind: "question" }));
    await Promise.all([catcher.count(1), other.count(1)]);
    expect(bodies()).toMatchObject([{ kind: "question" }]);
    expect(other.received).toHaveLength(1);
    await other.close();
  });

  test("goes by the config as its file is now", async () => {
    config = {};
    const { notifications } = await start();
    await notifications.notify(told({ title: "before" }));
    config = { channels: { hook: { type: "webhook", url: catcher.origin } } };
    await notifications.notify(told({ title: "after" }));
    await catcher.count(1);
    expect(bodies()).toMatchObject([{ title: "after" }]);
  });
});

describe("a server that starts anew", () => {
  test("sends what was left, and tells of what happened between the last word and its end", async () => {
    catcher.answers.push({ status: 500 });
    const first = await start();
    await first.notifications.notify(told({ title: "left over" }));
    await catcher.count(1);
    await first.notifications.close();
    // No server reads this event before the next one: it was committed, and then the server died.
    await ask({ sandboxName: "unheard" });
    await start();
    await catcher.count(3);
    expect(new Set(bodies().map(({ title }) => title))).toEqual(new Set(["left over", "Question: unheard"]));
    expect(catcher.received).toHaveLength(3);
  });

  test("tells of nothing that happened before there was anything to tell it by", async () => {
    await ask();
    const { notifications } = await start();
    await notifications.notify(told({ title: "only this" }));
    await catcher.count(1);
    expect(bodies()).toMatchObject([{ title: "only this" }]);
  });
});

describe("many notifications", () => {
  test("are so many a minute, and the rest is one that says so", async () => {
    const { notifications } = await start();
    for (let index = 0; index < LIMITS.notificationsPerMinute + 30; index += 1)
      await notifications.notify(told({ title: `number ${index}` }));
    await catcher.count(LIMITS.notificationsPerMinute + 1);
    const { deliveries } = await eventually(
      () => notifications.list(),
      (list) => list.deliveries.every(({ state }) => state === "sent"),
    );
    // Two, where the clock passed a minute meanwhile.
    expect(deliveries.length - LIMITS.notificationsPerMinute).toBeGreaterThan(0);
    expect(deliveries.length - LIMITS.notificationsPerMinute).toBeLessThanOrEqual(2);
    expect(deliveries.map(({ notification }) => notification)).toContainEqual(
      expect.objectContaining({ title: "More needs you", link: "/" }),
    );
  });

  test("by a channel that hangs hold up no other channel", async () => {
    config = {
      channels: { stuck: { type: "command", command: ["sleep", "600"], timeout: "10m" }, hook: { type: "webhook", url: catcher.origin } },
    };
    const { notifications } = await start();
    for (let index = 0; index < 10; index += 1) await notifications.notify(told({ title: `number ${index}` }));
    await catcher.count(10);
    const { channels } = await notifications.list();
    expect(channels.find(({ name }) => name === "stuck")?.waiting).toBe(10);
  });
});

describe("browsers that are subscribed (WEB-2)", () => {
  const receiver = new PushReceiver();
  const subscribe = async (browsers: PushBrowsers, endpoint = `${catcher.origin}/one`) => {
    const { secret } = await sessions.link(7411, true);
    const { session } = await sessions.login(secret, "a test");
    return { session: session.id, browser: await browsers.add({ session: session.id, endpoint, keys: receiver.keys }) };
  };

  beforeEach(() => {
    config = { pushServices: [catcher.origin] };
  });

  test("get what their push service can't read", async () => {
    const { browsers } = await start();
    await subscribe(browsers);
    const { id } = await ask();
    await catcher.count(1);
    const { body } = catcher.received[0] ?? { body: Buffer.alloc(0) };
    expect(JSON.parse(receiver.decrypt(body))).toMatchObject({ title: "Question: brave-otter", link: `/question/${id}` });
  });

  test("get nothing more once their session was ended, or has run out", async () => {
    const { notifications, browsers } = await start();
    const [ended, expired] = [await subscribe(browsers), await subscribe(browsers, `${catcher.origin}/two`)];
    await sessions.end(ended.session);
    expect((await browsers.list()).map(({ id }) => id)).toEqual([expired.browser.id]);
    expect(await store.pushBrowsers.list()).toHaveLength(1);
    clock.aheadMs = LIMITS.sessionMs + 1;
    await notifications.notify(told());
    expect((await notifications.list()).deliveries).toEqual([]);
    expect(catcher.received).toEqual([]);
  });

  test("are forgotten when their push service says that they are gone", async () => {
    catcher.answers.push({ status: 410 });
    const { notifications, browsers } = await start();
    await subscribe(browsers);
    await notifications.notify(told());
    const left = await eventually(
      () => browsers.list(),
      (list) => list.length === 0,
    );
    expect(left).toEqual([]);
  });

  test("are one for each browser, however often it subscribes", async () => {
    const { browsers } = await start();
    const { session } = await subscribe(browsers);
    await browsers.add({ session, endpoint: `${catcher.origin}/renewed`, keys: receiver.keys });
    await subscribe(browsers, `${catcher.origin}/renewed`);
    expect(await browsers.list()).toHaveLength(1);
  });

  test.each([
    ["a session that there is not", { session: newId("session") }, "not_found"],
    ["an endpoint in this machine's network", { endpoint: "https://192.168.1.1/push" }, "invalid_input"],
    ["an endpoint of plain HTTP", { endpoint: "http://push.example.com/x" }, "invalid_input"],
    ["keys that are none", { keys: { p256dh: "AAAA", auth: "AAAA" } }, "invalid_input"],
  ])("are refused with %s", async (_, change, code) => {
    const { browsers } = await start();
    const { session } = await subscribe(browsers);
    const good = { session, endpoint: `${catcher.origin}/one`, keys: receiver.keys };
    await expect(browsers.add({ ...good, ...change })).rejects.toMatchObject({ code });
    await expect(browsers.add(good)).resolves.toMatchObject({ session });
  });
});

describe("an automation (DMN-2, WEB-2)", () => {
  const notice = {
    title: "Automation deps",
    text: "Reality is worse after it.",
    link: "viv automation history fir1",
    project: "/srv/project",
  };
  const experiment = {
    id: newId("experiment"),
    project: "/srv/project",
    state: "choosing",
    createdAt: "2026-01-01T00:00:00.000Z",
    attempts: [],
    reason: "Choose.",
  };

  const end = (id: string): Promise<void> =>
    store.change(async (change) => {
      await change.experiments.put({ ...experiment, id } as unknown as ExperimentRow);
      await change.event("experiment.ended", null, { experiment: id });
    });

  test("tells what came of it: its experiment is told by it alone, and its proposal is a question by itself", async () => {
    await start();
    await store.change(async (change) => {
      const firing = { id: newId("firing"), sequence: 1, automation: "aut1", project: "/srv/project", state: "working", endedAt: null };
      await change.firings.put({ ...firing, experiment: experiment.id } as unknown as FiringRow);
    });
    await end(experiment.id);
    await store.change(async (change) => {
      for (const kind of ["question", "alert", "done"]) await change.event("automation.notice", null, { ...notice, kind });
    });
    // The control: an experiment that a person started is told.
    await end(newId("experiment"));
    await eventually(
      () => bodies().length,
      (count) => count === 3,
    );
    const kinds = bodies().map((body) => `${String(body["kind"])}: ${String(body["title"])}`);
    expect(kinds).toHaveLength(3);
    expect(kinds).toEqual(
      expect.arrayContaining(["done: Automation deps", "failed: Automation deps", expect.stringMatching(/^question: Choose: /)]),
    );
  });
});
