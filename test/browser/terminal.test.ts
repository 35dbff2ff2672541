/** The terminal of a sandbox in a real browser: what it loses, and what programs inside can't do by it. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab, isLive } from "../support/browser-lab.ts";
import { LossyNetwork } from "../support/lossy-network.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("the terminal of a sandbox (WEB-1)", needs("chromium", "root"), () => {
  let lab: BrowserLab;
  let network: LossyNetwork;
  let box: string;

  beforeAll(async () => {
    lab = await BrowserLab.start();
    network = await LossyNetwork.start();
    box = (await lab.server.create({ name: "shell" })).id;
  });

  afterAll(async () => {
    await lab.close();
    network.close();
  });

  const lines = async (page: Page): Promise<string[]> =>
    (await page.locator(".xterm-rows > div").allTextContents()).map((line) => line.replaceAll("\u00a0", " ").trimEnd());
  const isPrinted = async (page: Page, wanted: string): Promise<string[]> =>
    eventually(
      () => lines(page),
      // What runs in the background prints behind the prompt.
      (all) => all.some((line) => line.endsWith(wanted)),
      20_000,
    );
  const isReady = (page: Page): Promise<void> => page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
  const shells = async (): Promise<number> => {
    const { commands } = await lab.server.client.call("listCommands", { sandbox: box });
    return commands.filter(({ running, command }) => running && command.join(" ").includes("SHELL")).length;
  };

  test("goes on with the same shell after the server was restarted and the network was lost, with each line once", async () => {
    const visitor = await lab.visit("/sandbox/shell?show=terminal", { network });
    const { page } = visitor;
    await isReady(page);
    const type = (line: string): Promise<void> => page.keyboard.type(`${line}\n`);
    await type("own=$$; step() { echo $1-$((own == $$)); }; clear; step first");
    await isPrinted(page, "first-1");
    await type("(sleep 1; while [ ! -e /tmp/back ]; do sleep 0.1; done; step while-away) & clear; step second");
    await isPrinted(page, "second-1");
    await lab.server.down();
    await page.getByText("The shell goes on").waitFor();
    await lab.server.up();
    await lab.server.sh(box, "touch /tmp/back");
    await isLive(page);
    await isPrinted(page, "while-away-1");
    await type("step third");
    await isPrinted(page, "third-1");
    network.cut();
    await page.getByText("The shell goes on").waitFor();
    network.comeBack();
    await isLive(page);
    await eventually(
      () => page.getByText("The shell goes on").count(),
      (count) => count === 0,
    );
    await type("step fourth");
    const all = await isPrinted(page, "fourth-1");
    for (const line of ["second-1", "while-away-1", "third-1", "fourth-1"])
      expect(all.filter((each) => each.endsWith(line)).length, line).toBe(1);
    expect(await shells()).toBe(1);
    await lab.shot(page, "terminal-again");
  });

  test("ends its shell when the page is left, by a link or by closing the tab", async () => {
    const before = await shells();
    const { page, context, troubles } = await lab.visit("/sandbox/shell?show=terminal");
    await isReady(page);
    await eventually(shells, (count) => count === before + 1);
    await page.getByRole("link", { name: "Files" }).click();
    await eventually(shells, (count) => count === before);
    await page.goBack();
    await isReady(page);
    await eventually(shells, (count) => count === before + 1);
    await page.close({ runBeforeUnload: false });
    await eventually(shells, (count) => count === before);
    await context.close();
    expect(troubles).toEqual([]);
  });

  test("lets a program inside only draw: titles, clipboard and links of its output do nothing to the page", async () => {
    const { page, troubles } = await lab.visit("/sandbox/shell?show=terminal");
    await isReady(page);
    await page.evaluate("navigator.clipboard.writeText('of the person')");
    const title = await page.title();
    await lab.server.sh(
      box,
      String.raw`printf '\033]0;owned\007\033]2;<script>document.title="owned"</script>\007\033]52;c;b3duZWQ=\007\033]8;;javascript:document.title="owned"\007a-link\033]8;;\007 <img src=x onerror=document.title="owned">\n' > /tmp/hostile`,
    );
    await page.keyboard.type("clear; cat /tmp/hostile; echo shown-$((40+2))\n");
    await isPrinted(page, "shown-42");
    expect((await lines(page)).join("\n")).toContain('a-link <img src=x onerror=document.title="owned">');
    const link = await page.locator(".xterm-rows").getByText("a-link").first().boundingBox();
    await page.mouse.click((link?.x ?? 0) + 4, (link?.y ?? 0) + 4);
    expect(await page.title()).toBe(title);
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("of the person");
    expect(await page.locator(".xterm img").count()).toBe(0);
    expect(troubles).toEqual([]);
  });
});
