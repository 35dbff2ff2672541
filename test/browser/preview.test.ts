/** Ports of a sandbox in a real browser: the pane, what a hostile page in it can do, and hot reload of a real Vite. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Frame, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seriousFaults } from "../support/accessible.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { CHECKOUT } from "../support/compiled.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const APP = 3100;
const OTHER = 3200;
const VITE = 5173;
const MODULES = join(CHECKOUT, "node_modules");

/** A page with a form, a counter that is kept in a cookie, and a socket; and one that tries to get out. */
const SERVER = `
const { createServer } = require("node:http");
const { createHash } = require("node:crypto");
const port = Number(process.argv[2]);
const seen = [];
createServer((request, response) => {
  seen.push({ url: request.url, cookie: request.headers.cookie ?? null, key: request.headers["viv-key"] ?? null });
  if (request.url === "/seen") return response.end(JSON.stringify(seen));
  if (request.url === "/count") {
    const count = Number(/count=(\\d+)/.exec(request.headers.cookie ?? "")?.[1] ?? 0) + 1;
    return response.writeHead(200, { "set-cookie": "count=" + count + "; Path=/" }).end(String(count));
  }
  response.setHeader("x-frame-options", "DENY");
  response.setHeader("content-type", "text/html");
  response.end("<!doctype html><title>app</title><h1>Hello from " + port + "</h1><p id=count></p>" +
    "<script>fetch('/count').then((answer) => answer.text()).then((text) => document.querySelector('#count').textContent = 'count ' + text)</script>");
}).on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.on("error", () => socket.destroy());
}).listen(port, "127.0.0.1", () => console.log("listening"));
`;

/** Runs in a page: what it gets from an address by each way, in words. */
const REACH = `async (url) => {
  const words = (work) => Promise.race([
    work.catch((error) => "refused: " + error),
    new Promise((resolve) => setTimeout(() => resolve("nothing"), 3000)),
  ]);
  const socket = new Promise((resolve) => {
    const made = new WebSocket(url.replace("http", "ws"));
    made.onopen = () => resolve("open");
    made.onerror = () => resolve("refused");
  });
  const frame = new Promise((resolve) => {
    const made = document.createElement("iframe");
    made.onload = () => {
      try { resolve(made.contentDocument.body.textContent ? "read" : "refused"); } catch { resolve("refused"); }
    };
    made.src = url;
    document.body.append(made);
  });
  return {
    get: await words(fetch(url, { credentials: "include" }).then(({ status }) => String(status))),
    post: await words(fetch(url, { method: "POST", credentials: "include", body: "{}" }).then(({ status }) => String(status))),
    socket: await words(socket),
    frame: await words(frame),
  };
}`;

function reach(place: Page | Frame, target: string): Promise<Record<string, string>> {
  return place.evaluate(`(${REACH})(${JSON.stringify(target)})`);
}

describe("BOX-6: ports in a real browser", needs("chromium", "root"), () => {
  let lab: BrowserLab;
  let box: string;

  async function serve(sandbox: string, command: string[], ready: string): Promise<void> {
    const { id } = await lab.server.client.call("runCommand", { sandbox, command, background: true });
    await eventually(
      () => lab.server.client.call("inspectCommand", { sandbox, command: id }),
      ({ stdout }) => stdout.includes(ready),
      60_000,
    );
  }

  const frameOf = async (page: Page): Promise<Frame> => {
    const handle = await page.locator("iframe.preview-frame").elementHandle({ timeout: 30_000 });
    const frame = await handle?.contentFrame();
    if (frame === null || frame === undefined) throw new Error("the pane has no frame");
    return frame;
  };

  beforeAll(async () => {
    const files = {
      "server.cjs": SERVER,
      "index.html": '<!doctype html><div id="app"></div><input id="typed"><script type="module" src="/main.js"></script>',
      "main.js":
        'import { text } from "./text.js";\nconst show = (value) => (document.querySelector("#app").textContent = value);\nshow(text);\nif (import.meta.hot) import.meta.hot.accept("./text.js", (made) => show(made.text));\n',
      "text.js": 'export const text = "first";\n',
    };
    lab = await BrowserLab.start({ config: { expose: [dirname(process.execPath), MODULES] }, files });
    box = (await lab.server.create({ name: "web" })).id;
    for (const port of [APP, OTHER]) await serve(box, [process.execPath, "server.cjs", String(port)], "listening");
  });

  afterAll(() => lab?.close());

  test("shows a port beside the sandbox, with the app's own cookies, and in a tab", async () => {
    const visitor = await lab.visit(`/sandbox/web?show=preview&door=${APP}`);
    const { page, context } = visitor;
    const frame = await frameOf(page);
    await frame.getByText(`Hello from ${APP}`).waitFor();
    await frame.getByText("count 1").waitFor();
    await page.getByRole("button", { name: "Show" }).click();
    await (await frameOf(page)).getByText("count 2").waitFor();
    await page.getByRole("button", { name: String(OTHER) }).click();
    await page.frameLocator("iframe.preview-frame").getByText(`Hello from ${OTHER}`).waitFor();
    const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open in a tab" }).click()]);
    await tab.getByText(`Hello from ${OTHER}`).waitFor();
    expect(tab.url()).toBe(`http://${OTHER}-${box}.localhost:${new URL(page.url()).port}/`);
    await tab.reload();
    await tab.getByText("count 2").waitFor();
    await tab.close();
    await lab.picture(visitor, "preview");
    expect(await seriousFaults(page)).toEqual([]);
    expect(visitor.troubles).toEqual([]);
  });

  test("PV-02, PV-03: a page of a sandbox gets nothing of the dashboard or of another preview, in a tab and in a frame", async () => {
    const { page, context } = await lab.visit(`/sandbox/web?show=preview&door=${OTHER}`);
    const own = new URL(page.url());
    await page.frameLocator("iframe.preview-frame").getByText(`Hello from ${OTHER}`).waitFor();
    const [second] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open in a tab" }).click()]);
    await second.getByText(`Hello from ${OTHER}`).waitFor();
    await page.goto(new URL(`/sandbox/web?show=preview&door=${APP}`, own).href);
    const frame = await frameOf(page);
    await frame.getByText("count").waitFor();
    const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open in a tab" }).click()]);
    await tab.getByText("count").waitFor();
    const other = `http://${OTHER}-${box}.localhost:${own.port}/`;
    for (const place of [tab, frame]) {
      expect(await reach(place, place.url()), "the control: its own origin").toEqual({
        get: "200",
        post: "200",
        socket: "open",
        frame: "read",
      });
      for (const target of [`${own.origin}/sandboxes`, `http://localhost:${own.port}/`, `${own.origin}/work`, other]) {
        const got = await reach(place, target);
        expect(got, `${place.url()} to ${target}`).toMatchObject({ socket: "refused", frame: "refused" });
        for (const way of [got["get"], got["post"]]) expect(way).toMatch(/^refused/);
      }
    }
    const cookies = await frame.evaluate(`
      document.cookie = "mine=1; SameSite=None; Secure; Partitioned";
      document.cookie = "wide=1; domain=localhost";
      document.cookie = "viv-session-7411=1; domain=localhost";
      document.cookie`);
    expect(cookies).toContain("mine=1");
    expect(cookies).not.toContain("wide");
    const jar = await context.cookies([own.origin, `http://localhost:${own.port}`]);
    expect(jar.map(({ domain }) => domain)).toEqual(["127.0.0.1"]);
    // The frame can't take the dashboard's place, and a window that it opens has no way back.
    await frame.evaluate(`setTimeout(() => { top.location.href = ${JSON.stringify(other)}; })`);
    const [opened] = await Promise.all([context.waitForEvent("page"), tab.evaluate(`void open("${own.origin}/work")`)]);
    await opened.waitForLoadState();
    expect(await opened.evaluate("window.opener")).toBeNull();
    expect(new URL(page.url()).host).toBe(own.host);
    const seen = await tab.evaluate('fetch("/seen").then((answer) => answer.text())');
    expect(seen).toContain("count=");
    expect(seen).not.toMatch(/viv-|"key":"/);
    await Promise.all([tab.close(), second.close(), opened.close()]);
  });

  test("PV-01: a link lets in once; another browser, a closed port and a stopped sandbox get a page that says what to do", async () => {
    const gone = (await lab.server.create({ name: "gone" })).id;
    await serve(gone, [process.execPath, "server.cjs", String(APP)], "listening");
    const link = await lab.server.client.call("openPreview", { sandbox: "gone", port: APP, path: "/x" });
    const visitor = await lab.visitor();
    const { page } = visitor;
    await page.goto(link.url);
    await page.getByText(`Hello from ${APP}`).waitFor();
    expect(page.url()).toBe(link.address);
    const another = await lab.visitor();
    await another.page.goto(link.url);
    await another.page.getByText("This link was used already, or is too old.").waitFor();
    await another.page.goto(link.address);
    await another.page.getByText("This browser was not let in to this preview.").waitFor();
    await lab.picture(another, "preview-closed");
    expect(await seriousFaults(another.page)).toEqual([]);
    const none = await lab.server.client.call("openPreview", { sandbox: "gone", port: OTHER });
    await page.goto(none.url);
    await page.getByText(`Nothing listens on port ${OTHER} in this sandbox yet.`).waitFor();
    await lab.picture(visitor, "preview-waiting");
    await serve(gone, [process.execPath, "server.cjs", String(OTHER)], "listening");
    await page.getByText(`Hello from ${OTHER}`).waitFor();
    await lab.server.client.call("stopSandbox", { sandbox: gone });
    await page.reload();
    await page.getByText("viv start").first().waitFor();
    await lab.picture(visitor, "preview-stopped");
  });

  const vite = existsSync(join(MODULES, "vite")) ? {} : { skip: true, meta: { skipReason: "Vite is not installed in the checkout" } };
  test("hot reload of a real Vite changes the page as a file changes, and keeps what was typed", vite, async () => {
    const command = [process.execPath, join(MODULES, "vite", "bin", "vite.js"), "--port", String(VITE), "--strictPort"];
    await serve(box, command, "ready in");
    const { page, troubles } = await lab.visit(`/sandbox/web?show=preview&door=${VITE}`);
    const frame = await frameOf(page);
    await frame.getByText("first").waitFor();
    await frame.locator("#typed").fill("kept");
    await lab.server.sh(box, `echo 'export const text = "second";' > text.js`);
    await frame.getByText("second").waitFor({ timeout: 30_000 });
    expect(await frame.locator("#typed").inputValue()).toBe("kept");
    expect(troubles).toEqual([]);
  });
});
