/** JupyterLab of a sandbox in a real browser. */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seriousFaults } from "../support/accessible.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { CHECKOUT } from "../support/compiled.ts";
import { carriedLab, realJupyterLab } from "../support/jupyterlab.ts";
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
const PLOT =
  'from IPython.display import SVG; x = 41; print(\'printed\', x); SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><circle cx="15" cy="15" r="12"/></svg>\')';

async function runCell(page: Page, code: string): Promise<void> {
  const editor = page.locator(".jp-Notebook .jp-Cell .cm-content").last();
  await editor.waitFor({ timeout: 60_000 });
  // What is run before the kernel is connected is lost.
  await page.getByText("Python 3 (ipykernel) | Idle").waitFor({ timeout: 60_000 });
  await editor.click();
  await page.keyboard.insertText(code);
  await page.keyboard.press("Shift+Enter");
}

describe("IDE-1: JupyterLab in a sandbox", needed, () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start({ config: { expose }, files: { "notes.ipynb": JSON.stringify(CELL) } });
    await lab.server.create({ name: "notes", env: { PATH: `${programs}:${process.env["PATH"] ?? ""}` } });
  });

  afterAll(() => lab?.close());

  test("IDE-2: opens at /lab, runs a cell, shows its text and its picture; a reload keeps the kernel", { timeout: 240_000 }, async () => {
    const visitor = await lab.visitor();
    const { page } = visitor;
    await page.goto(await lab.link("/lab?sandbox=notes"));
    await page.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).dblclick({ timeout: 60_000 });
    expect(new URL(page.url()).hostname).toMatch(/^lab-sbx[a-z0-9]+\.localhost$/);
    await runCell(page, PLOT);
    await page.getByText("printed 41", { exact: true }).waitFor({ timeout: 60_000 });
    await page.locator(".jp-OutputArea-output svg circle, .jp-OutputArea-output img").first().waitFor();
    await page.screenshot({ path: join(CHECKOUT, ".cache", "screenshots", "lab.png") });
    expect(page.url()).not.toMatch(/token|#/);
    expect(await page.locator("#jupyter-config-data").textContent()).toContain('"token": ""');
    await page.goto(new URL("/lab/tree/notes.ipynb", page.url()).href);
    await runCell(page, "x + 1");
    await page.getByText("42", { exact: true }).waitFor({ timeout: 60_000 });
    await page.reload();
    await runCell(page, "x + 2");
    await page.getByText("43", { exact: true }).waitFor({ timeout: 60_000 });
  });

  test("is opened from the sandbox's page, in a tab of its own", async () => {
    const visitor = await lab.visit("/sandbox/notes?show=notebook");
    const { page, context, troubles } = visitor;
    const button = page.getByRole("button", { name: "Open JupyterLab" });
    await button.waitFor();
    await lab.picture(visitor, "notebook");
    expect(await seriousFaults(page)).toEqual([]);
    const [tab] = await Promise.all([context.waitForEvent("page"), button.click()]);
    await tab.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).waitFor({ timeout: 60_000 });
    expect(troubles).toEqual([]);
  });

  test("PV-02: what a cell shows gets nothing of the dashboard, in a browser that is logged in there", { timeout: 240_000 }, async () => {
    const { page, context } = await lab.visit("/sandbox/notes?show=notebook");
    const own = new URL(page.url());
    const [tab] = await Promise.all([context.waitForEvent("page"), page.getByRole("button", { name: "Open JupyterLab" }).click()]);
    await tab.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).dblclick({ timeout: 60_000 });
    /** A script in a cell's output that asks for something, with whatever cookies the browser would send. */
    const asked = async (target: string, mark: string): Promise<string | null> => {
      const script = `fetch("${target}", { credentials: "include" }).then((it) => "read " + it.status, () => "refused").then((word) => document.body.setAttribute("data-${mark}", word))`;
      await runCell(tab, `from IPython.display import Javascript; Javascript('${script}')`);
      await tab.locator(`body[data-${mark}]`).waitFor({ state: "attached", timeout: 60_000 });
      return tab.locator("body").getAttribute(`data-${mark}`);
    };
    expect(await asked("/api/status", "own"), "the control: its own origin").toBe("read 200");
    expect(await asked(`${own.origin}/sandboxes`, "dashboard")).toBe("refused");
    expect(await asked(`http://localhost:${own.port}/sandboxes`, "name")).toBe("refused");
  });

  test("the command line prints its link, without which no browser gets in", async () => {
    const { out } = viv(lab.server, ["notebook", "notes", "--json"]);
    const { url, address } = JSON.parse(out) as { url: string; address: string };
    expect(address).toMatch(/^http:\/\/lab-sbx[a-z0-9]+\.localhost:\d+\/lab$/);
    expect(url).toMatch(/\/\.viv\/enter#[\w-]{43}$/);
    const visitor = await lab.visitor();
    await visitor.page.goto(address);
    await visitor.page.getByText("This browser was not let in to this preview.").waitFor();
  });
});

const carried = carriedLab();

describe("IDE-1: a machine that has Jupyter's server without JupyterLab", carried, () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start({ files: { "notes.ipynb": JSON.stringify(CELL) } });
  });

  afterAll(() => lab?.close());

  const DEBIAN = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };

  test("has the front end that Vivarium carries: cells, settings that stay, no request that fails", { timeout: 240_000 }, async () => {
    await lab.server.create({ name: "carried", env: DEBIAN });
    const visitor = await lab.visitor();
    const { page, troubles } = visitor;
    await page.goto(await lab.link("/lab?sandbox=carried"));
    await page.locator(".jp-DirListing-itemText", { hasText: "notes.ipynb" }).dblclick({ timeout: 120_000 });
    await runCell(page, PLOT);
    await page.getByText("printed 41", { exact: true }).waitFor({ timeout: 60_000 });
    await page.locator(".jp-OutputArea-output svg circle, .jp-OutputArea-output img").first().waitFor();
    await page.screenshot({ path: join(CHECKOUT, ".cache", "screenshots", "lab-carried.png") });
    await page.goto(new URL("/lab/tree/notes.ipynb", page.url()).href);
    await runCell(page, "x + 1");
    await page.getByText("42", { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByRole("menuitem", { name: "Settings" }).click();
    await page.getByText("Theme", { exact: true }).hover();
    await page.getByText("JupyterLab Dark", { exact: true }).click();
    const dark = page.locator("body[data-jp-theme-name='JupyterLab Dark']");
    await dark.waitFor({ state: "attached" });
    await page.reload();
    await dark.waitFor({ state: "attached", timeout: 60_000 });
    expect(troubles).toEqual([]);
  });

  test("without what serves it says how to get it, and runs code all the same", async () => {
    const { name } = await lab.server.create({ name: "plain", env: DEBIAN });
    const removal = await lab.server.client.call("runCommand", {
      sandbox: name,
      command: ["rm", "-r", "/usr/lib/python3/dist-packages/jupyterlab_server"],
      user: "root",
    });
    expect(removal).toMatchObject({ end: { exitCode: 0 } });
    await expect(lab.server.client.call("openNotebook", { sandbox: name })).rejects.toMatchObject({
      code: "notebook_missing",
      remedy: expect.stringContaining("apt install python3-jupyterlab-server"),
    });
    expect(await lab.server.client.call("executeCode", { sandbox: name, context: "main", code: "1 + 1" })).toMatchObject({ state: "done" });
  });
});
