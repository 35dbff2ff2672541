import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InputOf } from "../../src/base/schema/contracts.ts";
import { Rfb } from "../../src/sandbox/desktop/rfb.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

type Action = InputOf<"useDesktop">["actions"][number];

const soon = (): AbortSignal => AbortSignal.timeout(20_000);

describe("GUI-1: the desktop of a sandbox", needs("root", "desktop"), () => {
  let server: TestServer;
  let box: string;
  const use = (...actions: Action[]): ReturnType<typeof server.client.call<"useDesktop">> =>
    server.client.call("useDesktop", { sandbox: box, actions });
  const said = async (path: string): Promise<string> => (await server.sh(box, `cat ${path} 2>/dev/null`)).stdout;

  /** A terminal whose program gets what is typed; resolves when its window is there. */
  const openTerminal = async (title: string, line: string): Promise<void> => {
    const command = ["xterm", "-u8", "-T", title, "-geometry", "80x24+100+100", "-e", "sh", "-c", line];
    await server.client.call("runCommand", { sandbox: box, command, background: true, env: { LC_ALL: "C.UTF-8" } });
    await eventually(
      () => server.client.call("listWindows", { sandbox: box }),
      ({ windows }) => windows.some((window) => window.title === title && window.active),
    );
  };

  beforeAll(async () => {
    server = await TestServer.start();
    box = (await server.create({ name: "desk" })).id;
    await server.client.call("openDesktop", { sandbox: box, width: 800, height: 600 });
  });
  afterAll(async () => server?.remove());

  test("shows a picture of its size, and no port listens for it", async () => {
    const png = await buffer(await server.client.screenshot(box));
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([800, 600]);
    const { stdout } = await server.sh(box, "cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == \"0A\" { print $2 }'");
    expect(stdout).not.toMatch(/:170C|:1770/i);
  });

  test("types all of Unicode, and every program finds it by DISPLAY", async () => {
    await openTerminal("typing", "cat > /tmp/typed");
    const text = 'Grüße, Ωμέγα, привет, 你好, 🎉 <>&|"$`\\';
    await use({ do: "click", x: 300, y: 250 }, { do: "type", text: `${text}\n` }, { do: "key", keys: "ctrl+d" });
    await eventually(
      () => said("/tmp/typed"),
      (typed) => typed === `${text}\n`,
    );
    expect((await server.sh(box, "echo $DISPLAY")).stdout).toBe(":0\n");
  });

  test("clicks, drags, scrolls, and tells where the pointer is", async () => {
    await openTerminal("pointing", "printf '\\033[?1002h\\033[?1006h'; stty raw -echo; cat > /tmp/pointed");
    // The click that reaches a window first also raises it.
    await use({ do: "click", x: 300, y: 250 });
    await eventually(
      () => said("/tmp/pointed"),
      (text) => text.endsWith("m"),
    );
    await use(
      { do: "click", button: "right" },
      { do: "click", count: 2 },
      { do: "scroll", down: 1 },
      { do: "scroll", down: -1 },
      { do: "drag", x: 200, y: 200, toX: 400, toY: 300 },
      { do: "move", x: 321, y: 123 },
    );
    const seen = await eventually(
      () => said("/tmp/pointed"),
      (text) => /\[<32;\d+;\d+M[^]*\[<0;\d+;\d+m$/.test(text),
    );
    const pressed = [...seen.matchAll(/\[<(\d+);\d+;\d+M/g)].map(([, button]) => Number(button)).filter((button) => button !== 32);
    expect(pressed).toEqual([0, 2, 0, 0, 65, 64, 0]);
    const { cursor } = await server.client.call("listWindows", { sandbox: box });
    expect(cursor).toEqual({ x: 321, y: 123 });
  });

  test("tells whether something changes", async () => {
    expect(await use({ do: "wait", timeoutMs: 300, area: { x: 0, y: 590, width: 5, height: 5 } })).toMatchObject({ changed: [false] });
    // It goes on changing: the wait may begin after the terminal is there.
    const later = use({ do: "wait", timeoutMs: 20_000 });
    await openTerminal("changing", "while sleep 0.2; do date +%N; done");
    expect(await later).toMatchObject({ changed: [true] });
  });

  test("gets another size while it runs, by a program and by the person who has control, and keeps it from others", async () => {
    const size = async (): Promise<readonly number[]> => {
      const png = await buffer(await server.client.screenshot(box));
      return [png.readUInt32BE(16), png.readUInt32BE(20)];
    };
    const open = (width: number, height: number): Promise<unknown> => server.client.call("openDesktop", { sandbox: box, width, height });
    expect(await open(1000, 700)).toMatchObject({ width: 1000, height: 700 });
    expect(await size()).toEqual([1000, 700]);
    await use({ do: "move", x: 950, y: 650 });
    expect((await server.client.call("listWindows", { sandbox: box })).cursor).toEqual({ x: 950, y: 650 });
    const looking = await Rfb.open(await server.client.desktop(box), soon());
    await expect(looking.resize(640, 480, AbortSignal.timeout(1_000))).rejects.toThrow();
    expect(await size()).toEqual([1000, 700]);
    const holder = await Rfb.open(await server.client.desktop(box, { control: true }), soon());
    await expect(open(640, 480)).rejects.toMatchObject({ code: "desktop_taken" });
    await holder.resize(640, 480, soon());
    expect(await server.client.call("inspectDesktop", { sandbox: box })).toMatchObject({ width: 640, height: 480 });
    for (const viewer of [looking, holder]) viewer.close();
    await eventually(
      () => server.client.call("inspectDesktop", { sandbox: box }),
      ({ taken, viewers }) => !taken && viewers === 0,
    );
    await open(800, 600);
  });

  test("takes no keys from a viewer that only looks, and all from one that has taken over", async () => {
    await openTerminal("taken", "cat > /tmp/taken");
    const typeBy = async (viewer: Rfb, letter: string): Promise<void> => {
      for (const key of [letter.charCodeAt(0), 0xff0d]) {
        viewer.key(key, true);
        viewer.key(key, false);
      }
      // The picture is asked for behind the keys.
      await viewer.picture(soon());
    };
    const looking = await Rfb.open(await server.client.desktop(box), soon());
    await typeBy(looking, "l");
    const first = await Rfb.open(await server.client.desktop(box, { control: true }), soon());
    await typeBy(first, "1");
    await expect(use({ do: "type", text: "p\n" })).rejects.toMatchObject({ code: "desktop_taken" });
    expect(await server.client.call("inspectDesktop", { sandbox: box })).toMatchObject({ taken: true, viewers: 2 });
    const second = await Rfb.open(await server.client.desktop(box, { control: true }), soon());
    await typeBy(first, "x");
    await typeBy(second, "2");
    for (const viewer of [second, first, looking]) viewer.close();
    await eventually(
      () => server.client.call("inspectDesktop", { sandbox: box }),
      ({ taken, viewers }) => !taken && viewers === 0,
    );
    await use({ do: "type", text: "3\n" }, { do: "key", keys: "ctrl+d" });
    expect(
      await eventually(
        () => said("/tmp/taken"),
        (text) => text.includes("3"),
      ),
    ).toBe("1\n2\n3\n");
    const story = await server.client.call("listAudit", { sandbox: box, limit: 200 });
    expect(JSON.stringify(story)).toContain("desktop.control");
    expect(JSON.stringify(story), "what is typed may be a password").not.toContain("Ωμέγα");
  });

  test("goes on while no server is there, and the next one finds it", async () => {
    await server.kill();
    await server.up();
    expect(await server.client.call("openDesktop", { sandbox: box })).toMatchObject({ width: 800, height: 600 });
    expect((await server.sh(box, "echo $DISPLAY")).stdout).toBe(":0\n");
    expect((await buffer(await server.client.screenshot(box))).length).toBeGreaterThan(100);
  });

  test("ends when it is closed, or its sandbox is rolled back, and starts again", async () => {
    await server.client.call("closeDesktop", { sandbox: box });
    await expect(server.client.screenshot(box)).rejects.toMatchObject({ code: "not_found" });
    expect((await server.sh(box, "echo ${DISPLAY-none}")).stdout).toBe("none\n");
    const { id } = await server.client.call("createSnapshot", { sandbox: box });
    expect(await server.client.call("openDesktop", { sandbox: box })).toMatchObject({ width: 1280, height: 800 });
    await server.client.call("rollback", { sandbox: box, snapshot: id });
    await expect(server.client.call("inspectDesktop", { sandbox: box })).rejects.toMatchObject({ code: "not_found" });
    await server.client.call("openDesktop", { sandbox: box });
    expect((await buffer(await server.client.screenshot(box))).length).toBeGreaterThan(100);
  });

  test("is started once, when several callers ask at the same time", async () => {
    const other = (await server.create({ name: "crowd" })).id;
    await Promise.all(Array.from({ length: 5 }, () => server.client.call("openDesktop", { sandbox: other })));
    const { commands } = await server.client.call("listCommands", { sandbox: other });
    expect(commands.filter(({ command }) => command[0] === "Xvnc").length).toBe(1);
  });

  test("says what to install where its programs are missing, and what was wrong with an action", async () => {
    const other = (await server.create({ name: "bare" })).id;
    await server.sh(other, "rm /usr/bin/Xvnc /usr/bin/openbox", { user: "root" });
    await expect(server.client.call("openDesktop", { sandbox: other })).rejects.toMatchObject({
      code: "desktop_missing",
      remedy: expect.stringContaining("apt install tigervnc-standalone-server openbox"),
    });
    await expect(use({ do: "key", keys: "ctrl+nokey" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(use({ do: "move", x: -1, y: 0 })).rejects.toMatchObject({ code: "invalid_input" });
  });
});
