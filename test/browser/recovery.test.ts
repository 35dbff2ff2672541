/** Pages that lose the server or the network, and go on by themselves: what they say meanwhile, and what they show afterwards. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab, isLive, type Visitor } from "../support/browser-lab.ts";
import { LossyNetwork } from "../support/lossy-network.ts";
import { needs } from "../support/skip.ts";

const isOffline = (page: Page): Promise<void> => page.locator('[data-live="offline"]:visible').first().waitFor();

describe("pages that come back by themselves (WEB-1)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;
  let network: LossyNetwork;

  beforeAll(async () => {
    runs = await RunLab.open();
    lab = await BrowserLab.before(runs.server);
    network = await LossyNetwork.start();
  });

  afterAll(async () => {
    await lab.close();
    network.close();
  });

  /** A run that says two things, and waits for a file before each. */
  const begin = async (): Promise<{ id: string; release: (file: string) => Promise<void> }> => {
    const { id } = await runs.begin(["text The first words", "hold one", "text The second words", "hold two", "text The last words"]);
    const { sandbox } = await runs.until(id, (run) => run.sandbox !== null);
    return { id, release: async (file) => void (await lab.server.sh(sandbox ?? "", `touch ${file}`)) };
  };

  /** A page whose clock the test can turn. */
  const visitWithClock = async (path: string): Promise<Visitor> => {
    const visitor = await lab.visitor({ network });
    await visitor.page.clock.install();
    await visitor.page.goto(await lab.link(path));
    await isLive(visitor.page);
    return visitor;
  };

  test("a run's page goes on after an orderly stop and a new start of the server, with each word once", async () => {
    const { id, release } = await begin();
    const { page, troubles } = await lab.visit(`/run/${id}`);
    await page.getByText("The first words", { exact: true }).waitFor();
    await lab.server.down();
    await isOffline(page);
    await lab.server.up();
    await isLive(page);
    await release("one");
    await page.getByText("The second words", { exact: true }).waitFor();
    await release("two");
    await page.getByText("The last words", { exact: true }).first().waitFor();
    await runs.ended(id);
    expect(await page.getByText("The first words", { exact: true }).count()).toBe(1);
    expect(await page.getByText("The second words", { exact: true }).count()).toBe(1);
    expect(troubles).toEqual([]);
  });

  test("a run's page shows what happened while the computer slept, though its connections died without a word", async () => {
    const { id, release } = await begin();
    const { page, troubles } = await visitWithClock(`/run/${id}`);
    await page.getByText("The first words", { exact: true }).waitFor();
    network.fallSilent();
    await release("one");
    await runs.waitForEvent(id, "message", ({ text }) => text === "The second words");
    network.comeBack();
    expect(await page.getByText("The second words", { exact: true }).count()).toBe(0);
    await page.clock.fastForward(60_000);
    await page.getByText("The second words", { exact: true }).waitFor();
    await isLive(page);
    await release("two");
    await page.getByText("The last words", { exact: true }).first().waitFor();
    expect(troubles).toEqual([]);
  });

  test("a page says that it is stale, then that it replays, and then shows what happened meanwhile", async () => {
    const { page, troubles } = await visitWithClock("/work?show=sandboxes");
    network.fallSilent();
    await page.clock.runFor(17_000);
    await page
      .getByText(/^Stale since \d+ s/)
      .locator("visible=true")
      .first()
      .waitFor();
    await lab.server.create({ name: "in-silence" });
    let letGo: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(/\/events\?/, async (route) => {
      await held;
      await route.continue();
    });
    network.comeBack();
    await page.clock.runFor(15_000);
    await page
      .getByText(/^Replaying \d+ event/)
      .locator("visible=true")
      .first()
      .waitFor();
    letGo();
    await isLive(page);
    await page.getByText("in-silence", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: "in-silence" });
    expect(troubles).toEqual([]);
  });

  test("a page that loses all its connections comes back when there is a network again", async () => {
    const { page, troubles } = await lab.visit("/work?show=sandboxes", { network });
    network.cut();
    await isOffline(page);
    await lab.server.create({ name: "in-the-dark" });
    network.comeBack();
    await isLive(page);
    await page.getByText("in-the-dark", { exact: true }).waitFor();
    await lab.server.client.call("removeSandbox", { sandbox: "in-the-dark" });
    expect(troubles).toEqual([]);
  });
});
