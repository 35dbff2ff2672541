/** The way of a person who has read nothing: from the link of `viv open` to a change in reality, and back, by what the pages say. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab, isLive } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("a first walk through the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    runs = await RunLab.open();
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(() => lab.close());

  test.each([
    ["a laptop", false],
    ["a phone", true],
  ])("leads from `viv open` to a promoted change, and takes it back, on %s", async (_, phone) => {
    const { server } = lab;
    const file = join(server.project, phone ? "by-phone.txt" : "by-laptop.txt");
    const name = phone ? "by-phone.txt" : "by-laptop.txt";
    const visitor = await lab.visitor({ phone });
    const { page, troubles } = visitor;
    const picture = (step: string): Promise<void> => lab.shot(page, `walk-${phone ? "phone" : "laptop"}-${step}`);
    const { url } = JSON.parse(viv(server, ["open", "--json"]).out) as { url: string };
    await page.goto(url);
    await isLive(page);
    await page.getByText("Nothing runs. Give an agent a task:").waitFor();
    await page.getByText("viv task 'fix the failing test'").first().waitFor();
    await picture("1-home");

    const { id } = await runs.begin([`text I write ${name}`, `call echo kept > ${name}`, "hold go", "text It is written"], {
      checks: [`grep -q kept ${name}`],
    });
    await press(
      page,
      page
        .getByRole("link")
        .filter({ hasText: `text I write ${name}` })
        .first(),
      phone,
    );
    await page.getByText("hold go").first().waitFor();
    await page.getByText("Bash").first().waitFor();
    await picture("2-run");
    const { sandbox } = await server.client.call("inspectRun", { run: id });
    await server.sh(sandbox ?? "", "touch go");
    await press(page, page.getByRole("link", { name: "See the verdict" }), phone);
    const promote = page.getByRole("button", { name: /^Promote/ });
    await promote.waitFor();
    await picture("3-verdict");
    expect(existsSync(file)).toBe(false);
    await press(page, promote, phone);
    await page.getByText("The change is in reality.").waitFor();
    await picture("4-promoted");
    expect(readFileSync(file, "utf8")).toBe("kept\n");
    await press(page, page.getByRole("button", { name: "Undo", exact: true }), phone);
    await eventually(
      () => existsSync(file),
      (isThere) => !isThere,
    );
    expect(troubles).toEqual([]);
  });
});

/** As a finger or a mouse does it: what is pressed is in sight once one has scrolled up or down, never sideways. */
async function press(page: Page, what: Locator, phone: boolean): Promise<void> {
  await what.waitFor();
  await what.scrollIntoViewIfNeeded();
  const box = await what.boundingBox();
  const width = page.viewportSize()?.width ?? 0;
  expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= width).toBe(true);
  if (phone) await what.tap();
  else await what.click();
}
