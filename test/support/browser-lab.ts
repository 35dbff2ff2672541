/** A real browser before a real server: Debian's Chromium, driven by playwright-core. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { expect } from "vitest";
import { seriousFaults } from "./accessible.ts";
import { CHECKOUT } from "./compiled.ts";
import type { LossyNetwork } from "./lossy-network.ts";
import { programPath } from "./skip.ts";
import { TestServer, type TestServerOptions } from "./server.ts";

const PICTURES = join(CHECKOUT, ".cache", "screenshots");
const DESK = { width: 1280, height: 860 };
const PHONE = { width: 360, height: 740 };

interface VisitorOptions {
  readonly phone?: boolean;
  /** What lies between this browser and the server. */
  readonly network?: LossyNetwork;
}

export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page: errors of scripts, refusals of the policy. */
  readonly troubles: string[];
}

export class BrowserLab {
  readonly server: TestServer;
  readonly #browser: Browser;
  readonly #contexts = new Set<BrowserContext>();

  private constructor(server: TestServer, browser: Browser) {
    this.server = server;
    this.#browser = browser;
  }

  static async start(options: TestServerOptions = {}): Promise<BrowserLab> {
    return BrowserLab.before(await TestServer.start(options));
  }

  static async before(server: TestServer): Promise<BrowserLab> {
    mkdirSync(PICTURES, { recursive: true });
    const browser = await chromium.launch({
      executablePath: programPath("chromium") ?? "chromium",
      args: ["--no-sandbox", "--disable-gpu"],
    });
    return new BrowserLab(server, browser);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.server.remove();
  }

  /** A link as `viv open` makes it: of a person on a terminal, unless said otherwise. */
  async link(path = "/", options: { readonly asProgram?: boolean } = {}): Promise<string> {
    const approver = options.asProgram === true ? {} : { approver: this.server.approver() };
    return (await this.server.client.call("openDashboard", { page: path, ...approver })).url;
  }

  async visitor(options: VisitorOptions = {}): Promise<Visitor> {
    const phone = options.phone === true;
    const context = await this.#browser.newContext({
      viewport: phone ? PHONE : DESK,
      hasTouch: phone,
      isMobile: phone,
      reducedMotion: "reduce",
      ...(options.network === undefined ? {} : { proxy: options.network.proxy }),
    });
    this.#contexts.add(context);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on("pageerror", (error) => troubles.push(String(error)));
    page.on("console", (message) => {
      // What the browser says of an answer that was an error is told by the page itself.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) troubles.push(message.text());
    });
    // Everything comes from the server itself, or from a sandbox by way of its previews.
    page.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (!["data:", "blob:"].includes(protocol) && hostname !== "127.0.0.1" && !hostname.endsWith(".localhost"))
        troubles.push(`asked for ${request.url()}`);
    });
    return { page, context, troubles };
  }

  /** A browser that is logged in, on a page that is live. */
  async visit(path = "/", options: VisitorOptions & { readonly asProgram?: boolean } = {}): Promise<Visitor> {
    const visitor = await this.visitor(options);
    await visitor.page.goto(await this.link(path, options));
    await isLive(visitor.page);
    return visitor;
  }

  /** The page in light, dark and at a phone's size, for people to look at; axe-core finds nothing serious in any of them. */
  async picture({ page }: Visitor, name: string): Promise<void> {
    const size = page.viewportSize() ?? DESK;
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await this.#shoot(page, DESK, `${name}-${scheme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
    await this.#shoot(page, PHONE, `${name}-phone`);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    expect(overflow, `${name} is wider than a phone`).toBeLessThanOrEqual(0);
    await page.setViewportSize(size);
  }

  /** What a person sees of a page without scrolling. */
  async shot(page: Page, name: string): Promise<void> {
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }

  /** In a window as tall as the page, so that what sticks to an edge of the window is at that edge. */
  async #shoot(page: Page, size: { readonly width: number; readonly height: number }, name: string): Promise<void> {
    await page.setViewportSize(size);
    const tall = await page.evaluate<number>("document.documentElement.scrollHeight");
    await page.setViewportSize({ width: size.width, height: Math.max(size.height, tall) });
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
    expect(await seriousFaults(page), `${name}, as axe-core sees it`).toEqual([]);
  }
}

export async function isLive(page: Page): Promise<void> {
  await page.locator('[data-live="live"]:visible').first().waitFor({ timeout: 20_000 });
}
