/** The desktop of a sandbox as a person sees and uses it in a browser. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { BrowserLab, isLive, type Visitor } from "../support/browser-lab.ts";
import { seriousFaults } from "../support/accessible.ts";
import { LossyNetwork } from "../support/lossy-network.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** What a program inside may have copied. */
const COPIED = "<img/src=x/onerror=document.title=/owned/>Ωμέγα";

const isShown = (page: Page): Promise<void> => page.locator('[data-connection="shown"] canvas').waitFor({ timeout: 30_000 });

describe("GUI-1: a desktop in a real browser", needs("chromium", "desktop", "root"), () => {
  let lab: BrowserLab;
  let box: string;

  beforeAll(async () => {
    lab = await BrowserLab.start();
    box = (await lab.server.create({ name: "desk" })).id;
  });

  afterAll(() => lab.close());

  test("IDE-2: is started, shown, taken over, typed into and given back; S4's /vnc.html shows it, too", async () => {
    const visitor = await lab.visit("/sandbox/desk?show=desktop");
    const { page, troubles } = visitor;
    await page.getByRole("button", { name: "Start the desktop" }).click();
    await page.locator('[data-connection="shown"] canvas').waitFor({ timeout: 30_000 });
    const command = ["xterm", "-maximized", "-e", "sh", "-c", "cat > /tmp/typed"];
    await lab.server.client.call("runCommand", { sandbox: box, command, background: true });
    const type = { sandbox: box, actions: [{ do: "type" as const, text: "by a program\n" }] };
    await eventually(
      () => lab.server.client.call("listWindows", { sandbox: box }),
      ({ windows }) => windows.some(({ active }) => active),
    );
    const canvas = page.locator(".desktop-screen canvas");
    await canvas.click();
    await page.keyboard.type("a viewer that only looks");
    await lab.server.client.call("useDesktop", type);
    await page.getByRole("button", { name: "Take over" }).click();
    await eventually(
      () => lab.server.client.call("inspectDesktop", { sandbox: box }),
      ({ taken }) => taken,
    );
    await page.locator('[data-connection="shown"] canvas').waitFor();
    await expect(lab.server.client.call("useDesktop", type)).rejects.toMatchObject({ code: "desktop_taken" });
    await canvas.click();
    await page.keyboard.type("by a person");
    await page.keyboard.press("Enter");
    await eventually(
      async () => (await lab.server.sh(box, "cat /tmp/typed")).stdout,
      (text) => text === "by a program\nby a person\n",
    );
    await lab.picture(visitor, "desktop");
    await page.getByRole("button", { name: "Give back" }).click();
    await eventually(
      () => lab.server.client.call("inspectDesktop", { sandbox: box }),
      ({ taken }) => !taken,
    );
    expect(await seriousFaults(page)).toEqual([]);
    await page.goto(new URL("/vnc.html?sandbox=desk", page.url()).href);
    await page.locator('[data-connection="shown"] canvas').waitFor({ timeout: 30_000 });
    await page.getByRole("button", { name: "Close the desktop" }).click();
    await page.getByRole("button", { name: "Start the desktop" }).waitFor();
    expect(troubles).toEqual([]);
  });

  /** A page that shows the desktop, which is started where there is none. */
  const look = async (options: { readonly network?: LossyNetwork } = {}): Promise<Visitor> => {
    await lab.server.client.call("openDesktop", { sandbox: box });
    const visitor = await lab.visit("/vnc.html?sandbox=desk", options);
    await isShown(visitor.page);
    return visitor;
  };

  const openTerminal = async (title: string, line: string): Promise<void> => {
    const command = ["xterm", "-u8", "-T", title, "-maximized", "-e", "sh", "-c", line];
    await lab.server.client.call("runCommand", { sandbox: box, command, background: true, env: { LC_ALL: "C.UTF-8" } });
    await eventually(
      () => lab.server.client.call("listWindows", { sandbox: box }),
      ({ windows }) => windows.some((window) => window.title === title && window.active),
    );
  };

  const said = async (path: string, text: string): Promise<void> => {
    await eventually(
      async () => (await lab.server.sh(box, `cat ${path} 2>/dev/null`)).stdout,
      (found) => found === text,
    );
  };

  const takeOver = async (page: Page): Promise<void> => {
    await page.getByRole("button", { name: "Take over" }).click();
    await page.getByText("you have it").waitFor();
    await isShown(page);
  };

  test("carries a text from the page into the desktop and one back, and only when a person presses a button", async () => {
    const { page, troubles } = await look();
    await page.evaluate("navigator.clipboard.writeText('of the person')");
    await takeOver(page);
    await openTerminal("copying", `printf '%s\\n' '${COPIED}'; stty -icanon; cat > /tmp/pasted`);
    await page.getByText("Clipboard", { exact: true }).click();
    await page.getByLabel("From you to the desktop").fill("Grüße 你好 🎉");
    await page.getByRole("button", { name: "Send to the desktop" }).click();
    await page.locator(".desktop-screen canvas").focus();
    // The text is fetched from the page by the program that pastes, which may paste before it is there.
    const pasted = async (): Promise<string> => {
      await page.keyboard.press("Shift+Insert");
      return (await lab.server.sh(box, "cat /tmp/pasted")).stdout;
    };
    await eventually(pasted, (text) => text.includes("Grüße 你好 🎉"));
    // Three clicks mark the line, which is what copies in a terminal.
    const canvas = await page.locator(".desktop-screen canvas").boundingBox();
    const first = { x: (canvas?.x ?? 0) + 20, y: (canvas?.y ?? 0) + 26 };
    await page.mouse.click(first.x, first.y, { clickCount: 3, delay: 30 });
    await eventually(
      () => page.getByLabel("Copied in the desktop").inputValue(),
      (text) => text.includes(COPIED),
    );
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("of the person");
    await page.getByRole("button", { name: "Copy to my clipboard" }).click();
    await page.getByText("Copied to your clipboard.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toContain(COPIED);
    expect(await page.title()).not.toContain("owned");
    await lab.shot(page, "desktop-clipboard");
    expect(await seriousFaults(page)).toEqual([]);
    expect(troubles).toEqual([]);
    await page.getByRole("button", { name: "Give back" }).click();
  });

  test("becomes as large as it is in the page when the person who has control wants that", async () => {
    const { page, troubles } = await look();
    await takeOver(page);
    const before = await lab.server.client.call("inspectDesktop", { sandbox: box });
    await page.getByLabel("As large as it is here").check();
    const place = await page.locator(".desktop-screen").boundingBox();
    const isFitting = ({ width, height }: { width: number; height: number }, box_ = place): boolean =>
      Math.abs(width - (box_?.width ?? 0)) <= 4 && Math.abs(height - (box_?.height ?? 0)) <= 4;
    expect(isFitting(before)).toBe(false);
    await eventually(
      () => lab.server.client.call("inspectDesktop", { sandbox: box }),
      (now) => isFitting(now),
    );
    await page.setViewportSize({ width: 1000, height: 700 });
    const smaller = await page.locator(".desktop-screen").boundingBox();
    await eventually(
      () => lab.server.client.call("inspectDesktop", { sandbox: box }),
      (now) => isFitting(now, smaller),
    );
    await lab.shot(page, "desktop-fits");
    await page.getByRole("button", { name: "Give back" }).click();
    await page.getByText("Programs have keys and pointer.").waitFor();
    expect(troubles).toEqual([]);
  });

  test("says on each page who has it, and tells the person from whom another one took over", async () => {
    const [one, other] = [await look(), await look()];
    await takeOver(one.page);
    await other.page.getByText("Another person has keys and pointer.").waitFor();
    await takeOver(other.page);
    await one.page.getByText("Another person took over from you.").waitFor();
    expect(await one.page.getByText("you have it").count()).toBe(0);
    await lab.shot(one.page, "desktop-taken");
    await openTerminal("held", "cat > /tmp/held");
    await one.page.locator(".desktop-screen canvas").click();
    await one.page.keyboard.type("x");
    await other.page.locator(".desktop-screen canvas").click();
    await other.page.keyboard.type("other");
    await other.page.keyboard.press("Enter");
    await said("/tmp/held", "other\n");
    await other.page.getByRole("button", { name: "Give back" }).click();
    for (const { page } of [one, other]) await page.getByText("Programs have keys and pointer.").waitFor();
    await takeOver(one.page);
    await other.page.getByText("Another person has keys and pointer.").waitFor();
    await one.context.close();
    await other.page.getByText("Programs have keys and pointer.").waitFor();
    expect([...one.troubles, ...other.troubles]).toEqual([]);
  });

  test("is typed into again after the server was restarted and the network was lost, without a click", async () => {
    const network = await LossyNetwork.start();
    const { page } = await look({ network });
    await takeOver(page);
    await openTerminal("again", "cat > /tmp/again");
    const type = async (text: string): Promise<void> => {
      await page.getByText("you have it").waitFor();
      await isShown(page);
      await page.locator(".desktop-screen canvas").click();
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    await type("one");
    await said("/tmp/again", "one\n");
    await lab.server.down();
    await page.getByText("not connected").waitFor();
    await lab.server.up();
    await isLive(page);
    await type("two");
    await said("/tmp/again", "one\ntwo\n");
    network.cut();
    await page.getByText("not connected").waitFor();
    network.comeBack();
    await isLive(page);
    await type("three");
    await said("/tmp/again", "one\ntwo\nthree\n");
    expect(await lab.server.client.call("inspectDesktop", { sandbox: box })).toMatchObject({ taken: true });
    network.close();
  });
});
