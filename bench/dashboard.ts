/** The dashboard in a real browser: how large its first page is, how soon it is live, and how late an event is seen in it. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { findPages } from "../src/base/config/machine.ts";
import { programPath } from "../test/support/skip.ts";
import { round, series, timed } from "./measure.ts";
import type { Group, Measured } from "./rows.ts";
import { BenchServer } from "./server.ts";

const LOADS = 20;
const EVENTS = 500;
const SANDBOXES = 20;
const EVERY_MS = 10;
const NAMES = "performance.getEntriesByType('resource').map((entry) => entry.name)";
/** Notes for each event of the list when it was drawn, by the clock that the server's events have, too. */
const WATCH = `
  window.lags = [];
  new MutationObserver((changes) => {
    const now = Date.now();
    for (const { addedNodes } of changes)
      for (const node of addedNodes)
        for (const row of node.matches?.('[data-at]') ? [node] : node.querySelectorAll?.('[data-at]') ?? [])
          window.lags.push(now - Date.parse(row.dataset.at));
  }).observe(document.body, { childList: true, subtree: true });
`;

export const dashboardGroup: Group = {
  keys: ["page_kb", "page_ms", "event_lag_ms"],
  async measure({ quick, progress }) {
    const program = programPath("chromium");
    const folder = findPages();
    if (program === undefined || folder === undefined) {
      const absent = { reason: program === undefined ? "chromium is not installed" : "the dashboard is not built" };
      return { page_kb: absent, page_ms: absent, event_lag_ms: absent };
    }
    return BenchServer.with(async (server) => {
      const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
      try {
        progress("page_kb, page_ms: the first page");
        const page = await open(browser, server, "/");
        const page_kb = await size(page, folder);
        const page_ms = await loads(page, server, quick ? 5 : LOADS);
        progress("event_lag_ms: 100 events a second");
        const event_lag_ms = await lag(await open(browser, server, "/machine?show=events"), server, quick ? 100 : EVENTS);
        return { page_kb, page_ms, event_lag_ms };
      } finally {
        await browser.close();
      }
    });
  },
};

async function open(browser: Browser, server: BenchServer, path: string): Promise<Page> {
  const { url } = await server.call("openDashboard", { page: path });
  const page = await browser.newPage();
  await page.goto(url);
  await isLive(page);
  return page;
}

async function isLive(page: Page): Promise<void> {
  await page.locator('[data-live="live"]:visible').first().waitFor();
}

/** What a browser without a cache fetches for it, gzipped. */
async function size(page: Page, folder: string): Promise<Measured> {
  const names = await page.evaluate<string[]>(NAMES);
  const files = names.map((name) => new URL(name).pathname).filter((path) => path.startsWith("/assets/"));
  const bytes = ["/index.html", ...files].map((path) => statSync(join(folder, `${path}.gz`)).size);
  return { figure: round(bytes.reduce((sum, one) => sum + one, 0) / 1000), raw: {}, more: { files: bytes.length } };
}

/** With work to show, against the same page of a server that has none. */
async function loads(page: Page, server: BenchServer, count: number): Promise<Measured> {
  const empty = await reloads(page, "Nothing waits for you.", count);
  const { id } = await server.call("createSandbox", { project: server.project, level: 2 });
  for (let index = 1; index < SANDBOXES; index += 1) await server.call("createSandbox", { project: server.project });
  await server.call("decideAction", { sandbox: id, action: { kind: "command", command: "git push origin main" } });
  const load = await reloads(page, "git push origin main", count);
  const { sandboxes } = await server.call("listSandboxes", {});
  for (const { name } of sandboxes) await server.call("removeSandbox", { sandbox: name });
  return { figure: load.median, raw: { load, empty }, more: { empty_ms: empty.median } };
}

async function reloads(page: Page, shown: string, count: number): Promise<ReturnType<typeof series>> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    samples.push(
      await timed(async () => {
        await page.reload();
        await isLive(page);
        await page.getByText(shown).first().waitFor();
      }),
    );
  }
  return series(samples);
}

async function lag(page: Page, server: BenchServer, count: number): Promise<Measured> {
  const { id } = await server.call("createSandbox", { project: server.project });
  await page.evaluate(WATCH);
  const began = performance.now();
  const calls: Promise<unknown>[] = [];
  for (let index = 0; index < count; index += 1) {
    calls.push(server.call("extendSandbox", { sandbox: id }));
    const wait = began + (index + 1) * EVERY_MS - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
  }
  await Promise.all(calls);
  const took = performance.now() - began;
  // The pages' policy lets no text become a script in them, so the browser is asked from outside.
  while ((await page.evaluate<number>("window.lags.length")) < count) await new Promise((resolve) => setTimeout(resolve, 50));
  const all = series(await page.evaluate<number[]>("window.lags"));
  return { figure: all.median, raw: { lag: all }, more: { per_s: round((count / took) * 1000) } };
}
