/** The desktop of a sandbox from the command line. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const HOSTILE = `<img src=x onerror=alert(1)>\u001b]52;c;b3duZWQ=\u0007\u001b[2J`;

describe("GUI-1: `viv desktop`", needs("root", "desktop"), () => {
  let server: TestServer;
  const desktop = (...words: string[]): ReturnType<typeof viv> => viv(server, ["desktop", "desk", ...words]);
  const windows = async (isRight: (windows: OutputOf<"listWindows">["windows"]) => boolean): Promise<void> => {
    await eventually(
      () => server.client.call("listWindows", { sandbox: "desk" }),
      (shown) => isRight(shown.windows),
      30_000,
    );
  };
  const openTerminal = async (title: string, line: string): Promise<void> => {
    const command = ["xterm", "-u8", "-T", title, "-geometry", "80x24+100+100", "-e", "sh", "-c", line];
    await server.client.call("runCommand", { sandbox: "desk", command, background: true, env: { LC_ALL: "C.UTF-8" } });
  };

  beforeAll(async () => {
    server = await TestServer.start();
    await server.create({ name: "desk" });
  });
  afterAll(async () => server?.remove());

  test("starts it and says its size, gives it another size while it runs, and leaves it as it is without one", () => {
    expect(desktop()).toMatchObject({ code: 0, out: "The desktop of desk has 1280 by 800 pixels.\n" });
    expect(desktop("--size", "900x700")).toMatchObject({ code: 0, out: "The desktop of desk has 900 by 700 pixels.\n" });
    expect(JSON.parse(desktop("--json").out)).toMatchObject({ width: 900, height: 700, taken: false });
    expect(desktop("--size", "9x9").code).toBe(2);
  });

  test("does actions in order, and writes a screenshot of what came of them", async () => {
    await openTerminal("typing", "cat > /tmp/typed");
    await windows((shown) => shown.some(({ title, active }) => title === "typing" && active));
    const picture = join(server.place, "now.png");
    expect(desktop("click 300 250", "type Grüße", "key Return", "key ctrl+d", "wait", "--screenshot", picture)).toMatchObject({ code: 0 });
    await eventually(
      async () => (await server.sh("desk", "cat /tmp/typed")).stdout,
      (typed) => typed === "Grüße\n",
    );
    const png = readFileSync(picture);
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([900, 700]);
    expect(desktop("--screenshot", "-").bytes.subarray(1, 4).toString()).toBe("PNG");
    expect(desktop("dance").code).toBe(2);
  });

  test("shows a hostile title of a window as text, without its control characters", async () => {
    // xterm leaves control characters out of a title that it is given, so the title is set as another program would.
    await openTerminal("hostile", "sleep 600");
    await windows((shown) => shown.some(({ title }) => title === "hostile"));
    const set = `import ctypes,sys
x=ctypes.CDLL("libX11.so.6"); x.XOpenDisplay.restype=ctypes.c_void_p; d=ctypes.c_void_p(x.XOpenDisplay(None))
t=sys.argv[2].encode(); x.XChangeProperty(d, ctypes.c_ulong(int(sys.argv[1])), x.XInternAtom(d, b"_NET_WM_NAME", 0), x.XInternAtom(d, b"UTF8_STRING", 0), 8, 0, t, len(t)); x.XSync(d, 0)`;
    const { windows: shown } = await server.client.call("listWindows", { sandbox: "desk" });
    const id = shown.find(({ title }) => title === "hostile")?.id ?? "";
    const { stderr } = await server.client.call("runCommand", { sandbox: "desk", command: ["python3", "-c", set, id, HOSTILE] });
    expect(stderr).toBe("");
    await windows((all) => all.some(({ title }) => title === HOSTILE));
    const { out } = desktop("--windows");
    expect(out).toContain("<img src=x onerror=alert(1)>");
    expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  test("opens Chromium with --browser, with and without an address, beside actions", needs("chromium"), async () => {
    expect(desktop("--browser", "move 10 10")).toMatchObject({ code: 0 });
    await windows((shown) => shown.some(({ title }) => /chromium/i.test(title)));
    expect(desktop("--browser", "data:text/html,<title>by-address</title>")).toMatchObject({ code: 0 });
    await windows((shown) => shown.some(({ title }) => title.startsWith("by-address")));
  });

  test("ends it", () => {
    expect(desktop("--close")).toMatchObject({ code: 0, out: "The desktop has ended.\n" });
    expect(desktop("--close").err).toContain("has no desktop");
  });
});
