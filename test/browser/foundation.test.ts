/** Logging in, staying live, and coming back: what every page stands on. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab, isLive } from "../support/browser-lab.ts";
import { seriousFaults } from "../support/accessible.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("the dashboard in a real browser (WEB-1)", needs("chromium", "root"), () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start();
  });

  afterAll(() => lab.close());

  test("is opened by a link that works once, and stays open without it", async () => {
    const first = await lab.visitor();
    const link = await lab.link();
    await first.page.goto(link);
    await isLive(first.page);
    expect(first.page.url()).not.toContain("login");
    expect(await first.page.evaluate("document.cookie")).toBe("");
    const second = await lab.visitor();
    await second.page.goto(link);
    await second.page.getByText("was used already").waitFor();
    await lab.picture(second, "login");
    await first.page.reload();
    await isLive(first.page);
    expect(first.troubles).toEqual([]);
  });

  test("leads a link of a page to that page, also in another tab", async () => {
    const { page, context, troubles } = await lab.visit("/work");
    await page.getByRole("heading", { name: "Work" }).waitFor();
    const other = await context.newPage();
    await other.goto(new URL("/question", page.url()).href);
    await other.getByText("No question waits for you.").waitFor();
    expect(troubles).toEqual([]);
  });

  test("says what to type on a machine where nothing happens, and shows a sandbox that is made", async () => {
    const visitor = await lab.visit("/");
    await visitor.page.getByText("Nothing waits for you.").waitFor();
    await visitor.page.getByText("viv task").first().waitFor();
    await lab.picture(visitor, "home-empty");
    await visitor.page.goto(new URL("/work?show=sandboxes", visitor.page.url()).href);
    await visitor.page.getByText("There is no sandbox").waitFor();
    const { name } = await lab.server.create({ name: "shown" });
    await visitor.page.getByText("shown", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: name });
    await visitor.page.getByText("There is no sandbox").waitFor();
    expect(visitor.troubles).toEqual([]);
    expect(await seriousFaults(visitor.page)).toEqual([]);
  });

  test("recovers by itself when the server is killed and started anew, and says so meanwhile", async () => {
    const { page, troubles } = await lab.visit("/work?show=sandboxes");
    await lab.server.kill();
    await page.locator('[data-live="offline"]:visible').first().waitFor();
    await page.getByText("The server can't be reached").waitFor();
    await lab.server.up();
    await isLive(page);
    const { name } = await lab.server.create({ name: "after-restart" });
    await page.getByText("after-restart", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: name });
    expect(troubles).toEqual([]);
  });

  test("recovers by itself when the network was lost, and shows what happened meanwhile", async () => {
    const { page, context, troubles } = await lab.visit("/work?show=sandboxes");
    await context.setOffline(true);
    await page.locator('[data-live="offline"]:visible').first().waitFor();
    await lab.server.create({ name: "meanwhile" });
    await context.setOffline(false);
    await isLive(page);
    await page.getByText("meanwhile", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: "meanwhile" });
    expect(troubles).toEqual([]);
  });

  test("gives its connection back in the background, and shows what happened meanwhile when it is seen again", async () => {
    const { page, troubles } = await lab.visitor();
    await page.clock.install();
    await page.addInitScript("Object.defineProperty(document, 'hidden', { get: () => window.isAway === true, configurable: true })");
    await page.goto(await lab.link("/work?show=sandboxes"));
    await isLive(page);
    const turn = async (away: boolean): Promise<void> => {
      await page.evaluate(`window.isAway = ${away}; document.dispatchEvent(new Event("visibilitychange"))`);
    };
    await turn(true);
    await page.clock.runFor(25_000);
    await lab.server.create({ name: "unseen" });
    await page.clock.runFor(5_000);
    expect(await page.getByText("unseen", { exact: true }).count()).toBe(0);
    await turn(false);
    await page.getByText("unseen", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: "unseen" });
    expect(troubles).toEqual([]);
  });

  test("logs a browser out at once when its session is ended", async () => {
    const { page } = await lab.visit("/");
    const { sessions } = await lab.server.client.call("listSessions", {});
    for (const { id, state } of sessions) if (state === "open") await lab.server.client.call("endSession", { session: id });
    await page.getByText("This browser is not logged in").waitFor();
    expect((await lab.server.client.call("listSessions", {})).sessions.filter(({ state }) => state === "open")).toEqual([]);
  });

  test("is opened by `viv open`, which lists browsers and logs them out", async () => {
    const { server } = lab;
    const made = viv(server, ["open", "--json", "/work"]);
    expect(made).toMatchObject({ code: 0 });
    const { url, mayAnswer } = JSON.parse(made.out) as { url: string; mayAnswer: boolean };
    expect(mayAnswer).toBe(false);
    const asPerson = viv(server, ["open", "--json"], { env: { VIV_APPROVER_TOKEN: server.approver() } });
    expect(JSON.parse(asPerson.out)).toMatchObject({ mayAnswer: true });
    expect(viv(server, ["open", "--json"], { env: { VIV_APPROVER_TOKEN: "guessed" } }).code).toBe(4);
    const { page } = await lab.visitor();
    await page.goto(url);
    await page.getByRole("heading", { name: "Work" }).waitFor();
    await isLive(page);
    expect(viv(server, ["open", "--sessions"]).out).toContain("HeadlessChrome");
    const { sessions } = await server.client.call("listSessions", {});
    const own = sessions.find(({ state }) => state === "open")?.id ?? "";
    expect(viv(server, ["open", "--end", own])).toMatchObject({ code: 0 });
    await page.getByText("This browser is not logged in").waitFor();
    expect(viv(server, ["open", "--end", own]).code).toBe(2);
  });

  test("is used with the keyboard: jumps, the command bar, the list of keys", async () => {
    const visitor = await lab.visit("/");
    const { page, troubles } = visitor;
    await page.keyboard.press("g");
    await page.keyboard.press("w");
    await page.waitForURL("**/work");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("questi");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/question");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await lab.picture(visitor, "keys");
    await page.keyboard.press("Escape");
    await eventually(
      () => page.getByRole("dialog").count(),
      (count) => count === 0,
    );
    expect(troubles).toEqual([]);
  });

  test("does without a mouse what a page can do, and gives the focus back to where it was", async () => {
    await lab.server.create({ name: "by-keys" });
    const visitor = await lab.visit("/work?show=sandboxes");
    const { page, troubles } = visitor;
    const row = page.locator('a.item[href="/sandbox/by-keys"]');
    await row.waitFor();
    await page.keyboard.press("j");
    expect(await row.evaluate((element) => element.matches(":focus-visible"))).toBe(true);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "by-keys" }).waitFor();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("pause");
    await lab.picture(visitor, "command-bar");
    await page.keyboard.press("Enter");
    await page.getByText("paused").first().waitFor();
    await page.goBack();
    await row.waitFor();
    await eventually(
      () => row.evaluate((element) => element === element.ownerDocument.activeElement),
      (focused) => focused,
    );
    await lab.server.client.call("removeSandbox", { sandbox: "by-keys" });
    expect(troubles).toEqual([]);
  });
});
