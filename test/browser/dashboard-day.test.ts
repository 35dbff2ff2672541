/**
 * A day in ten minutes: sandboxes and a hundred events a second, with pages open all the time. Neither a tab nor the server grows.
 * `npm run test:browser` has the short version; `npm run soak -- dashboard-day` the long one, which prints its figures.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds, SOAKING } from "../support/soak.ts";

const SECONDS = rounds(30, 600);
const SANDBOXES = rounds(10, 100);
const EVENTS_A_SECOND = 100;
/** Of that, what must be reached: a machine that is busy with other work gives a tenth of it away, one that can't keep up gives more. */
const LEAST_A_SECOND = 30;
/** A frame that takes longer is seen as a jerk. Chromium without a graphics card draws each frame on the processor. */
const SMOOTH_MS = 50;
const JERK_MS = 150;
const AT_ONCE = 8;
/** Below what a page keeps, so that the beginning is still there to scroll to. */
const SAID = rounds(2_000, 49_900);
const MIB = 1024 * 1024;
/** What a tab may have more at the end than in the middle, and what the list of all events may hold: its 50,000 events. */
const TAB_GROWS = 6 * MIB;
const EVENTS_TAB_HOLDS = 80 * MIB;
/** Of the server, from when its caches are filled: the garbage that it has not looked at yet. */
const SERVER_GROWS = 64 * MIB;

interface Sizes {
  readonly home: number;
  readonly work: number;
  readonly events: number;
  readonly server: number;
}

/** What scripts of the page hold, once what is not needed was let go. */
async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  try {
    await session.send("HeapProfiler.collectGarbage");
    return (await session.send("Runtime.getHeapUsage")).usedSize;
  } finally {
    await session.detach();
  }
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

function inMib(sizes: Sizes): string {
  return Object.entries(sizes)
    .map(([name, size]: [string, number]) => `${name} ${(size / MIB).toFixed(1)}`)
    .join(", ");
}

describe("a day of the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    runs = await RunLab.open();
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(() => lab.close());

  test(
    "keeps the memory of tabs and server flat under a hundred events a second",
    async () => {
      const { server } = lab;
      const boxes: string[] = [];
      for (let index = 0; index < SANDBOXES; index += 1) boxes.push((await server.create({ name: `box-${index}` })).id);
      const visitors = await Promise.all(["/", "/work?show=sandboxes", "/machine?show=events"].map((path) => lab.visit(path)));
      const [home, work, events] = visitors.map(({ page }) => page);
      if (home === undefined || work === undefined || events === undefined) throw new Error("a page is missing");
      const measure = async (): Promise<Sizes> => ({
        home: await heapOf(home),
        work: await heapOf(work),
        events: await heapOf(events),
        server: residentBytes(server.pid),
      });
      let sent = 0;
      /** As many events as are due, a few calls at once; on a machine that is too busy for that, fewer. */
      const drive = async (seconds: number): Promise<void> => {
        const began = performance.now();
        const under = new Set<Promise<unknown>>();
        for (let index = 0; performance.now() - began < seconds * 1000; index += 1) {
          const call = server.client
            .call("extendSandbox", { sandbox: boxes[index % boxes.length] ?? "" })
            .finally(() => under.delete(call));
          under.add(call);
          sent += 1;
          if (under.size >= AT_ONCE) await Promise.race(under);
          const wait = began + ((index + 1) * 1000) / EVENTS_A_SECOND - performance.now();
          if (wait > 0) await delay(wait);
        }
        await Promise.all(under);
      };
      const driving = performance.now();
      // The beginning is measured when caches are filled.
      await drive(SECONDS / 5);
      const start = await measure();
      await drive((SECONDS * 2) / 5);
      const middle = await measure();
      await drive((SECONDS * 2) / 5);
      const end = await measure();
      const perSecond = sent / ((performance.now() - driving) / 1000);
      if (SOAKING)
        process.stdout.write(
          `${SANDBOXES} sandboxes, ${sent} events, ${perSecond.toFixed(0)} a second. MiB at start: ${inMib(start)}; middle: ${inMib(middle)}; end: ${inMib(end)}.\n`,
        );
      expect(perSecond, "events a second").toBeGreaterThan(LEAST_A_SECOND);
      expect(end.home - middle.home).toBeLessThan(TAB_GROWS);
      expect(end.work - middle.work).toBeLessThan(TAB_GROWS);
      expect(end.events).toBeLessThan(EVENTS_TAB_HOLDS);
      expect(end.server - start.server).toBeLessThan(SERVER_GROWS);
      // The pages were alive all the time: the last event is in the list of them, and only what is on the screen is drawn.
      const { newestEvent } = await server.client.call("status", {});
      await events.locator(".events li").getByText(String(newestEvent), { exact: true }).waitFor();
      expect(await events.locator(".events li").count()).toBeLessThan(100);
      expect(visitors.flatMap(({ troubles }) => troubles)).toEqual([]);
      for (const sandbox of boxes) await server.client.call("removeSandbox", { sandbox });
    },
    (SECONDS + 400) * 1000,
  );

  test(
    "scrolls smoothly through a long conversation, and draws only what is on the screen",
    async () => {
      const { id } = await runs.begin([`many ${SAID}`, "hold go", "text The end"]);
      const { page, troubles } = await lab.visit(`/run/${id}`);
      await page
        .getByText(`${SAID - 1}`, { exact: false })
        .first()
        .waitFor({ timeout: 400_000 });
      expect(await page.locator(".entry").count()).toBeLessThan(120);
      // The newest is followed, until one scrolls up.
      await eventually(
        () => page.evaluate<number>("document.documentElement.scrollHeight - innerHeight - scrollY"),
        (left) => left < 200,
      );
      const frames = await page.evaluate<number[]>(`new Promise((resolve) => {
        const times = [];
        let last = performance.now();
        const step = (now) => {
          times.push(now - last);
          last = now;
          if (times.length >= 120) return resolve(times.slice(1));
          scrollBy(0, -600);
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      })`);
      const sorted = frames.toSorted((one, other) => one - other);
      if (SOAKING)
        process.stdout.write(
          `${SAID} entries: a frame while scrolling takes ${sorted[60]?.toFixed(0)} ms (median), ${sorted[112]?.toFixed(0)} ms (95 of 100).\n`,
        );
      expect(sorted[60], "median of frames").toBeLessThan(SMOOTH_MS);
      expect(sorted[112], "95 of 100 frames").toBeLessThan(JERK_MS);
      await page.evaluate("scrollTo(0, 0)");
      await page.getByText("began with").waitFor();
      await page.getByRole("button", { name: "To the newest" }).click();
      await page
        .getByText(`${SAID - 1}`, { exact: false })
        .first()
        .waitFor();
      expect(await page.locator(".entry").count()).toBeLessThan(120);
      const { sandbox } = await lab.server.client.call("inspectRun", { run: id });
      await lab.server.sh(sandbox ?? "", "touch go");
      await runs.ended(id);
      await page.getByText("The end").first().waitFor();
      expect(troubles).toEqual([]);
    },
    (SOAKING ? 900 : 120) * 1000,
  );
});
