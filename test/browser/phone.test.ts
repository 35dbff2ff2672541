/** Reaching a phone: the installable page, the service worker that shows what is pushed, and the page that turns it on. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type BrowserContext, type CDPSession, type Page, type Worker } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seriousFaults } from "../support/accessible.ts";
import { BrowserLab, isLive } from "../support/browser-lab.ts";
import { line } from "../support/inside.ts";
import { PushReceiver, RequestCatcher } from "../support/push-service.ts";
import { eventually } from "../support/server.ts";
import { needs, programPath } from "../support/skip.ts";

const DESK = { width: 1280, height: 860 };
const PHONE = { width: 360, height: 740 };

describe("reaching a phone (WEB-2, POL-5)", needs("chromium", "root"), () => {
  let lab: BrowserLab;
  let service: RequestCatcher;
  let profile: string;
  /** A browser with a profile of its own: a private window has neither push messages nor an installable page. */
  let context: BrowserContext;
  let page: Page;
  let session: CDPSession;
  const receiver = new PushReceiver();
  let box: string;
  /** The server's own origin. */
  let home: string;
  const worker = (): Worker => {
    const found = context.serviceWorkers().find((one) => one.url() === `${home}/push-worker.js`);
    if (found === undefined) throw new Error("there is no service worker");
    return found;
  };
  const picture = async (name: string): Promise<void> => {
    await page.setViewportSize(DESK);
    await lab.picture({ page, context, troubles: [] }, name);
    await page.setViewportSize(PHONE);
  };
  /** What its push service would hand the browser. */
  const deliver = async (data: string): Promise<void> => {
    // The browser's list is no use to wait for it: Chromium takes out of it what is not on its screen yet when it is asked.
    await worker().evaluate(`self.seen ??= [];
      self.really ??= registration.showNotification.bind(registration);
      registration.showNotification = async (title, options) => (await self.really(title, options), self.seen.push({ title, body: options.body }))`);
    const registrationId = await registrationOf(session, home);
    await session.send("ServiceWorker.deliverPushMessage", { origin: home, registrationId, data });
  };
  /** What the browser has shown of it. */
  const shown = (least: number): Promise<{ title: string; body: string }[]> =>
    eventually(
      () => worker().evaluate<{ title: string; body: string }[]>("self.seen"),
      (all) => all.length >= least,
      30_000,
    );
  /** A tap, as the browser tells the worker of it. */
  const tap = (title: string): Promise<unknown> =>
    worker().evaluate(`registration.getNotifications().then((all) => {
      const notification = all.find((one) => one.title === ${JSON.stringify(title)});
      dispatchEvent(new NotificationEvent("notificationclick", { notification }));
    })`);

  beforeAll(async () => {
    service = await RequestCatcher.start();
    const notifications = {
      pushServices: [service.origin],
      channels: {
        chat: { type: "webhook", url: `${service.origin}/hook`, on: [] },
        script: { type: "command", command: ["false"], on: [] },
      },
    };
    lab = await BrowserLab.start({ config: { spares: false, notifications } });
    box = (await lab.server.create({ level: 2, name: "brave-otter" })).id;
    profile = mkdtempSync(join(tmpdir(), "viv-profile-"));
    context = await chromium.launchPersistentContext(profile, {
      executablePath: programPath("chromium") ?? "chromium",
      args: ["--no-sandbox", "--disable-gpu"],
      viewport: PHONE,
      reducedMotion: "reduce",
    });
    // The tools stay on a page of their own, which is no page of the dashboard.
    session = await context.newCDPSession(await context.newPage());
    page = await context.newPage();
    await page.goto(await lab.link("/machine?show=notifications"));
    await isLive(page);
    home = new URL(page.url()).origin;
  });

  afterAll(async () => {
    await context?.close();
    await lab?.close();
    await service?.close();
    rmSync(profile, { recursive: true, force: true });
  });

  test("can be installed: a manifest, pictures in their sizes, a page of its own", async () => {
    const manifest = (await (await page.request.get(`${home}/manifest.webmanifest`)).json()) as {
      start_url: string;
      display: string;
      icons: { src: string; sizes: string; type: string }[];
    };
    expect(manifest).toMatchObject({ start_url: "/", display: "standalone" });
    for (const { src, sizes, type } of [...manifest.icons, { src: "/icon-180.png", sizes: "180x180", type: "image/png" }]) {
      const icon = await page.request.get(`${home}${src}`);
      expect([src, icon.status(), icon.headers()["content-type"]]).toEqual([src, 200, type]);
      if (type !== "image/png") continue;
      const bytes = await icon.body();
      expect(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`).toBe(sizes);
    }
    const tools = await context.newCDPSession(page);
    const { installabilityErrors } = await tools.send("Page.getInstallabilityErrors");
    expect(installabilityErrors).toEqual([]);
    await tools.detach();
  });

  test("says in words that a browser refuses, and names a webhook instead", async () => {
    await page.getByText("Gets no notifications while no page is open.").waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await picture("notifications");
    // Its browser was told to allow the clipboard and nothing else.
    const blocked = await lab.visit("/machine?show=notifications", { phone: true });
    await blocked.page.getByText("Notifications of this page are blocked in this browser.").waitFor();
    await blocked.page.getByText("A webhook reaches you in any case").waitFor();
    expect(await blocked.page.getByRole("button", { name: "Turn on" }).isDisabled()).toBe(true);
    const tab = await blocked.page.getByRole("link", { name: "Notifications", exact: true }).boundingBox();
    expect((tab?.x ?? -1) >= 0 && (tab?.x ?? 0) + (tab?.width ?? 0) <= PHONE.width).toBe(true);
    expect(blocked.troubles).toEqual([]);
    await blocked.context.close();
  });

  test("says what the browser's push service answered, where that can't be had", async () => {
    await context.grantPermissions(["notifications"], { origin: home });
    await page.reload();
    await page.getByRole("button", { name: "Turn on" }).click();
    // Without a network there is no push service; the service worker is there all the same.
    const alert = page.getByRole("alert");
    await alert.waitFor({ timeout: 60_000 });
    expect(await alert.textContent()).toMatch(/push service|Registration failed/);
    await page.getByText("A webhook reaches you in any case").waitFor();
    await picture("notifications-refused");
  });

  test("shows what was pushed without an open page, and a tap leads to the question, which is answered there", async () => {
    // The server's side: as if the browser's push service were this test.
    const { sessions } = await lab.server.client.call("listSessions", {});
    const own = sessions.find(({ state }) => state === "open")?.id ?? "";
    await lab.server.client.call("addPushBrowser", { session: own, endpoint: `${service.origin}/push`, keys: receiver.keys });
    const action = line("git push origin main");
    const { approval } = await lab.server.client.call("decideAction", { sandbox: box, action, wait: 0 });
    await service.count(1);
    const pushed = receiver.decrypt(service.received[0]?.body ?? Buffer.alloc(0));
    expect(JSON.parse(pushed)).toMatchObject({ title: "Question: brave-otter", link: `/question/${approval?.id}` });
    // The browser's side, with no page of the dashboard open.
    await page.goto("about:blank");
    await deliver(pushed);
    expect(await shown(1)).toMatchObject([
      { title: "Question: brave-otter", body: expect.stringContaining("git push origin main") as string },
    ]);
    await page.goto(`${home}/work`);
    await isLive(page);
    await tap("Question: brave-otter");
    await page.waitForURL(`**/question/${approval?.id}`);
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByText("approved").first().waitFor();
    expect(await lab.server.client.call("inspectApproval", { approval: approval?.id ?? "" })).toMatchObject({ state: "approved" });
  });

  test("AP-32: shows a message that it can't read as one that something needs the person, and leads nowhere else than here", async () => {
    await deliver("not json");
    await deliver(JSON.stringify({ id: "a", kind: "done", title: "<b>x</b>", text: "y", link: "https://evil.example/" }));
    expect((await shown(3)).map(({ title }) => title)).toEqual(expect.arrayContaining(["Vivarium", "<b>x</b>"]));
    await tap("<b>x</b>");
    await page.waitForURL(`${home}/`);
  });

  test("lists channels with their state in words, tests them, and tells what was sent lately", async () => {
    await page.goto(`${home}/machine?show=notifications`);
    await isLive(page);
    for (const name of ["chat", "script"])
      await page.getByRole("listitem").filter({ hasText: name }).getByRole("button", { name: "Test" }).click();
    await page.getByText("false ended with 1.").first().waitFor();
    await page.getByRole("listitem").filter({ hasText: "chat" }).getByText("works").waitFor();
    await picture("notifications-channels");
    expect(await seriousFaults(page)).toEqual([]);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    expect(overflow).toBeLessThanOrEqual(0);
  });
});

/** Of the service worker, as the browser's tools name it. */
async function registrationOf(session: CDPSession, home: string): Promise<string> {
  const found = new Promise<string>((resolve) => {
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const id = registrations.find(({ isDeleted, scopeURL }) => !isDeleted && scopeURL === `${home}/`)?.registrationId;
      if (id !== undefined) resolve(id);
    });
  });
  await session.send("ServiceWorker.disable");
  await session.send("ServiceWorker.enable");
  return found;
}
