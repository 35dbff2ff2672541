/** The pages of a sandbox and of the machine, and how fast and small pages are. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab } from "../support/browser-lab.ts";
import { CHECKOUT } from "../support/compiled.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FIRST_PAGE_BYTES = 200 * 1024;

describe("sandbox and machine in the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start({ files: { "hello.txt": "hello\n", "src/a.js": "export const a = 1;\n" } });
    await lab.server.create({ name: "seen" });
    await lab.server.sh("seen", "echo more >> hello.txt; echo out");
  });

  afterAll(() => lab.close());

  test("shows what a sandbox uses against its limits, and how it stands to reality, as that moves", async () => {
    const visitor = await lab.visit("/sandbox/seen");
    const { page } = visitor;
    await page.getByText("Use against limits").waitFor();
    await page.getByText("as reality is").waitFor();
    await page.locator(".plot polyline").first().waitFor({ state: "attached" });
    await lab.picture(visitor, "sandbox");
    writeFileSync(join(lab.server.project, "hello.txt"), "moved\n");
    await page.getByText("stale", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused").first().waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("running").first().waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("takes snapshots, rolls back to one, undoes that, and forks it", async () => {
    const { id } = await lab.server.create({ name: "trees" });
    await lab.server.sh(id, "echo first > state.txt");
    const visitor = await lab.visit("/sandbox/trees");
    const { page } = visitor;
    await page.getByRole("button", { name: "Take one" }).click();
    await page.getByText("· here").waitFor();
    await lab.server.sh(id, "echo second > state.txt");
    await page.getByRole("button", { name: "Roll back" }).first().click();
    await page.getByText("What was there is kept.").waitFor();
    expect((await lab.server.sh(id, "cat state.txt")).stdout).toBe("first\n");
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(
      // Its processes are started anew meanwhile.
      () =>
        lab.server.sh(id, "cat state.txt").then(
          ({ stdout }) => stdout,
          () => "",
        ),
      (text) => text === "second\n",
    );
    await page.getByRole("button", { name: "Fork" }).first().click();
    await page.getByText("Forked.").waitFor();
    await lab.picture(visitor, "snapshots");
    expect(visitor.troubles).toEqual([]);
  });

  test("has a terminal inside, and files that are looked at, uploaded and downloaded", async () => {
    const visitor = await lab.visit("/sandbox/seen?show=terminal");
    const { page } = visitor;
    await page.locator(".xterm-helper-textarea").waitFor();
    await page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
    await page.keyboard.type("echo hello-$((40+2))\n");
    await page.locator(".xterm-rows").getByText("hello-42").first().waitFor();
    await lab.picture(visitor, "terminal");
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("button", { name: "hello.txt" }).click();
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("more").first().waitFor();
    await page.locator('input[type="file"]').setInputFiles({ name: "up.txt", mimeType: "text/plain", buffer: Buffer.from("<b>up</b>") });
    await page.getByRole("button", { name: "up.txt" }).waitFor();
    expect((await lab.server.sh("seen", "cat up.txt")).stdout).toBe("<b>up</b>");
    await lab.picture(visitor, "files");
    await page.getByRole("button", { name: "up.txt" }).click();
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    expect(readFileSync(await saved.path(), "utf8")).toBe("<b>up</b>");
    expect(visitor.troubles).toEqual([]);
  });

  test("shows pictures as pictures and other bytes as neither, and the address leads back to the folder", async () => {
    const picture = readFileSync(join(CHECKOUT, "web", "public", "icon-180.png")).toString("base64");
    await lab.server.sh("seen", `mkdir -p art; echo ${picture} | base64 -d > art/icon.png; head -c 64 /dev/zero > art/zero.png`);
    await lab.server.sh("seen", `echo '<svg xmlns="http://www.w3.org/2000/svg"><text>drawn</text></svg>' > art/drawn.png`);
    const visitor = await lab.visit("/sandbox/seen?show=files");
    const { page } = visitor;
    const show = async (name: string): Promise<void> => {
      await page.getByRole("button", { name }).click();
      await page.getByRole("button", { name: "Show" }).click();
    };
    await page.getByRole("button", { name: "art" }).click();
    await show("icon.png");
    const image = page.locator("img.picture");
    await image.waitFor();
    await eventually(
      () => image.evaluate((element) => (element as { naturalWidth?: number }).naturalWidth),
      (width) => width === 180,
    );
    await lab.picture(visitor, "files-picture");
    expect(new URL(page.url()).searchParams.get("folder")).toBe(join(lab.server.project, "art"));
    await page.reload();
    await show("zero.png");
    await page.getByText("It is neither text nor a picture.").waitFor();
    await show("drawn.png");
    await page.getByText("<text>drawn</text>").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "hello.txt" }).waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("explains what the rules say to a command: verdict, rule, reason, and each part (POL-1)", async () => {
    const visitor = await lab.visit("/machine?show=policy");
    const { page } = visitor;
    await page.getByLabel("Whose rules").selectOption("level2");
    await page.getByLabel("The action").fill("npm test && git push origin main");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("A person is asked first.").waitFor();
    await page.getByRole("cell", { name: "git push origin main" }).waitFor();
    await page.getByText("bash: git push *").first().waitFor();
    await lab.picture(visitor, "machine-explain");
    await page.reload();
    await page.getByText("A person is asked first.").waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("loads its first page within 200 kB, and its parts from the cache afterwards", async () => {
    const { page } = await lab.visit("/");
    const entries = (await page.evaluate(
      "performance.getEntriesByType('resource').filter((e) => /assets|index/.test(e.name)).map((e) => e.name)",
    )) as string[];
    const folder = join(CHECKOUT, "build", "web");
    const sizes = entries.map((name) => statSync(join(folder, `${new URL(name).pathname}.gz`)).size);
    expect(sizes.length).toBeGreaterThan(2);
    expect(sizes.reduce((sum, size) => sum + size, statSync(join(folder, "index.html.gz")).size)).toBeLessThan(FIRST_PAGE_BYTES);
    await page.reload();
    const sent = (await page.evaluate(
      "performance.getEntriesByType('resource').filter((e) => e.name.includes('/assets/')).map((e) => e.transferSize)",
    )) as number[];
    expect(sent.every((bytes) => bytes === 0)).toBe(true);
  });
});
