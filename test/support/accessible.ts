/** What axe-core finds wrong with a page, as far as it is serious. */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly where: readonly string[];
}

/** In a world of its own: the page's policy lets no such script in. */
export async function seriousFaults(page: Page): Promise<Violation[]> {
  const session = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await session.send("Page.getFrameTree");
    const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
    const run = (expression: string) =>
      session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
    await run(SOURCE);
    const { result } = await run("axe.run(document, { resultTypes: ['violations'] })");
    const { violations } = result.value as AxeResults;
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => ({ id, where: nodes.map(({ target, failureSummary }) => `${String(target)}: ${failureSummary ?? ""}`) }));
  } finally {
    await session.detach();
  }
}
