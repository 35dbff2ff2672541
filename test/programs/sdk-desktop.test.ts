/** GUI-1, API-1: the desktop of a sandbox by the SDK, with the machine's Xvnc. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Vivarium as BrowserVivarium } from "../../src/interfaces/sdk/browser.ts";
import type { Desktop, Sandbox } from "../../src/interfaces/sdk/exports.ts";
import { Vivarium } from "../../src/interfaces/sdk/node.ts";
import { readFileSync } from "node:fs";
import { eventually, freePort, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a program that uses a desktop by the SDK (GUI-1, API-1)", needs("root", "desktop"), () => {
  let server: TestServer;
  let viv: Vivarium;
  let box: Sandbox;
  let desktop: Desktop;
  let url: string;

  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    server = await TestServer.start({ flags: ["--listen", String(port)] });
    viv = new Vivarium({ home: server.paths.home, start: false });
    box = await viv.create({ project: server.project });
    desktop = await box.desktop({ width: 800, height: 600 });
  });
  afterAll(async () => {
    viv?.close();
    await server?.remove();
  });

  const sizeOf = (png: Uint8Array): number[] => {
    const bytes = Buffer.from(png);
    return bytes.toString("latin1", 1, 4) === "PNG" ? [bytes.readUInt32BE(16), bytes.readUInt32BE(20)] : [];
  };

  /** A terminal whose program gets what is typed and clicked. */
  const openTerminal = async (title: string, line: string): Promise<void> => {
    const words = ["xterm", "-u8", "-T", title, "-geometry", "80x24+100+100", "-e", "sh", "-c", line];
    await box.background(words, { env: { LC_ALL: "C.UTF-8" } });
    await eventually(
      () => desktop.windows(),
      (windows) => windows.some((window) => window.title === title && window.active),
    );
  };
  const said = async (path: string): Promise<string> => (await box.run(`cat ${path} 2>/dev/null`)).stdout;

  test("looks: a picture of its size, windows, the pointer, whether something changes", async () => {
    expect(desktop.info).toMatchObject({ width: 800, height: 600, taken: false });
    expect(sizeOf(await desktop.screenshot())).toEqual([800, 600]);
    await desktop.move({ x: 33, y: 44 });
    expect(await desktop.cursor()).toEqual({ x: 33, y: 44 });
    expect(await desktop.waitForChange({ timeoutMs: 200, area: { x: 0, y: 590, width: 5, height: 5 } })).toBe(false);
    const changed = desktop.waitForChange({ timeoutMs: 30_000 });
    await openTerminal("changing", "sleep 600");
    expect(await changed).toBe(true);
  });

  test("types, presses keys, clicks, drags and scrolls", async () => {
    await openTerminal("typing", "cat > /tmp/typed");
    await desktop.click({ x: 300, y: 250 });
    await desktop.type("Grüße 你好\n");
    await desktop.key("ctrl+d");
    await eventually(
      () => said("/tmp/typed"),
      (text) => text === "Grüße 你好\n",
    );
    // A window that closes gives the place in front to the one below it, which would get the clicks.
    await eventually(
      () => desktop.windows(),
      (windows) => windows.every((window) => window.title !== "typing"),
    );
    await openTerminal("pointing", "stty raw -echo; printf '\\033[?1002h\\033[?1006h\\033[6n'; cat > /tmp/pointed");
    // The terminal answers the question where its cursor is, once it tells of the pointer.
    await eventually(
      () => said("/tmp/pointed"),
      (text) => text.endsWith("R"),
    );
    await desktop.click({ x: 300, y: 250 });
    await eventually(
      () => said("/tmp/pointed"),
      (text) => text.endsWith("m"),
    );
    await desktop.click({ x: 300, y: 250 }, { button: "middle" });
    await desktop.click(undefined, { button: "right" });
    await desktop.doubleClick();
    await desktop.scroll({ down: 1, at: { x: 300, y: 250 } });
    await desktop.drag({ x: 200, y: 200 }, { x: 400, y: 300 });
    const seen = await eventually(
      () => said("/tmp/pointed"),
      (text) => /\[<32;\d+;\d+M[^]*\[<0;\d+;\d+m$/.test(text),
    );
    const pressed = [...seen.slice(seen.indexOf("[<1;")).matchAll(/\[<(\d+);\d+;\d+M/g)]
      .map(([, button]) => Number(button))
      .filter((button) => button !== 32);
    expect(pressed).toEqual([1, 2, 0, 0, 65, 0]);
    expect(
      await desktop.do([
        { do: "move", x: 1, y: 2 },
        { do: "wait", timeoutMs: 50 },
      ]),
    ).toMatchObject({ changed: [expect.any(Boolean)] });
  });

  test("does the same from a page, and is told what is wrong", async () => {
    const page = new BrowserVivarium({ url, token: readFileSync(server.paths.token, "utf8").trim() });
    const same = await (await page.get(box.id)).desktop();
    expect(sizeOf(await same.screenshot())).toEqual([800, 600]);
    await expect(desktop.click({ x: -1, y: 0 })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(desktop.key("nothing+like+this")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(desktop.screenshot({ singal: 1 } as never)).rejects.toThrow('desktop.screenshot has no option "singal".');
    await expect(desktop.waitForChange({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
  });

  test("is closed at the end of its block, also where it ended before", async () => {
    {
      await using other = await box.desktop();
      expect(other.info.width).toBe(800);
      await other.close();
    }
    await expect(desktop.screenshot()).rejects.toMatchObject({ code: "not_found" });
    await using again = await box.desktop({ width: 640, height: 480 });
    expect(sizeOf(await again.screenshot())).toEqual([640, 480]);
  });
});
