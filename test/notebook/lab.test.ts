/** JupyterLab of a sandbox in a real browser. */
import type { FrameLocator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab } from "../support/browser-lab.ts";
import { realJupyterLab } from "../support/jupyterlab.ts";
import { missing, needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const lacking = missing("chromium", "root");
const { programs, expose, needed } =
  lacking === undefined ? await realJupyterLab() : { programs: "", expose: [], needed: needs("chromium", "root") };

const CELL = {
  cells: [{ cell_type: "code", execution_count: null, id: "one", metadata: {}, outputs: [], source: "" }],
  metadata: { kernelspec: { display_name: "Python 3", language: "python", name: "python3" } },
  nbformat: 4,
  nbformat_minor: 5,
};

/** A drawing, as a plot is one: SVG that the kernel makes. */
const PLOT = "from IPython.display import SVG; x = 41; print('printed', x); SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90\" height=\"30\"><circle cx=\"15\" cy=\"15\" r=\"12\"/></svg>')";

describe("IDE-1: JupyterLab in a sandbox", needed, () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start({ config: { expose }, files: { "notes.ipynb": JSON.stringify(CELL) } });
    await lab.server.create({ name: "notes", env: { PATH: `${programs}:${process.env["PATH"] ?? ""}` } });
  });

  afterAll(() => lab?.close());

  async function runCell(page: Page, place: Page | FrameLocator, code: string): Promise<void> {
    const editor = place.locator(".jp-Notebook .jp-Cell .cm-content").last();
    await editor.waitFor({ timeout: 60_000 });
    await place.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").waitFor({ timeout: 60_000 });
    await editor.click();
    await page.keyboard.insertText(code);
    await page.keyboard.press("Shift+Enter");
  }

  test("IDE-2: opens at /lab, runs a cell, shows its text and its picture; a reload keeps the kernel", { timeout: 240_000 }, async () => {
    const visitor = await lab.visit("/lab?sandbox=notes", { kept: true });
    const { page, context } = visitor;
    const frame = page.frameLocator("iframe.preview-frame");
    await frame.locator(".jp-LauncherCard").first().waitFor({ timeout: 120_000 });
    await frame.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).dblclick();
    await runCell(page, frame, PLOT);
    await frame.getByText("printed 41", { exact: true }).waitFor({ timeout: 60_000 });
    await frame.locator(".jp-OutputArea-output svg circle, .jp-OutputArea-output img").first().waitFor();
    await lab.picture(visitor, "lab");
    expect(page.url()).not.toMatch(/token|#/);
    expect(await frame.locator("#jupyter-config-data").textContent()).toContain('"token": ""');
    const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open in a tab" }).click()]);
    await tab.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).waitFor({ timeout: 60_000 });
    await tab.goto(new URL("/lab/tree/notes.ipynb", tab.url()).href);
    await runCell(tab, tab, "x + 1");
    await tab.getByText("42", { exact: true }).waitFor({ timeout: 60_000 });
    await tab.reload();
    await runCell(tab, tab, "x + 2");
    await tab.getByText("43", { exact: true }).waitFor({ timeout: 60_000 });
    await tab.close();
  });

  test("a browser that refuses storage to frames shows it in a tab instead", async () => {
    const { page, context } = await lab.visit("/sandbox/notes?show=notebook");
    await page.frameLocator("iframe.preview-frame").getByText("open it in a tab").waitFor({ timeout: 60_000 });
    const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open in a tab" }).click()]);
    await tab.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).waitFor({ timeout: 60_000 });
  });

  test("the command line prints its link; the socket inside is the only way to it", async () => {
    const { out } = viv(lab.server, ["notebook", "notes", "--json"]);
    const { url, address } = JSON.parse(out) as { url: string; address: string };
    expect(address).toMatch(/^http:\/\/lab-sbx[a-z0-9]+\.localhost:\d+\/lab$/);
    expect(url).toMatch(/\/\.viv\/enter#[\w-]{43}$/);
    const { ports } = await lab.server.client.call("listPorts", { sandbox: "notes" });
    expect(ports).toEqual([]);
    const visitor = await lab.visitor();
    await visitor.page.goto(address);
    await visitor.page.getByText("This browser was not let in to this preview.").waitFor();
  });

  test("a machine without JupyterLab says how to get it, and runs code all the same", needs("jupyter"), async () => {
    const { name } = await lab.server.create({ name: "plain", env: { PATH: "/usr/bin:/bin" } });
    await expect(lab.server.client.call("openNotebook", { sandbox: name })).rejects.toMatchObject({
      code: "notebook_missing",
      remedy: expect.stringContaining("pip install jupyterlab"),
    });
    expect(await lab.server.client.call("executeCode", { sandbox: name, context: "main", code: "1 + 1" })).toMatchObject({ state: "done" });
  });
});
