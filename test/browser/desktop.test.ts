/** The desktop of a sandbox as a person sees and uses it in a browser. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab } from "../support/browser-lab.ts";
import { seriousFaults } from "../support/accessible.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

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
});
