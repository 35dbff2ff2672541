/** Talking to a run, what stands beside it, keys of a phone's terminal, and logging out. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { seriousFaults } from "../support/accessible.ts";
import { BrowserLab, type Visitor } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PORT = 3400;
const SERVER = `require("node:http").createServer((_, response) => response.setHeader("content-type", "text/html").end("<h1>Served by the agent</h1>")).listen(${PORT}, "127.0.0.1")`;

describe("talking to a run in the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    runs = await RunLab.open();
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(() => lab.close());

  async function held(steps: readonly string[] = []): Promise<{ id: string; sandbox: string }> {
    const { id } = await runs.begin([...steps, "call echo ready", "hold go", "text That is all"]);
    await runs.waitForEvent(id, "tool_result");
    const { sandbox } = await runs.until(id, (run) => run.sandbox !== null);
    return { id, sandbox: sandbox ?? "" };
  }

  async function say({ page }: Visitor, way: string, text: string, tap = false): Promise<void> {
    const choice = page.getByText(way, { exact: true });
    const send = page.getByRole("button", { name: "Send" });
    if (tap) await choice.tap();
    else await choice.click();
    await page.getByLabel("Message to the agent").fill(text);
    if (tap) await send.tap();
    else await send.click();
  }

  const message = async (run: string, text: string) =>
    (await lab.server.client.call("listRunMessages", { run })).messages.find((one) => one.text === text);

  test("a message that is queued is read after the turn, and its fate changes on the page", async () => {
    const { id, sandbox } = await held();
    const visitor = await lab.visit(`/run/${id}`);
    await say(visitor, "Queue", "text Read later");
    const fate = visitor.page.getByRole("log", { name: "What became of your messages" });
    await fate.getByText("queued").waitFor();
    expect(await message(id, "text Read later")).toMatchObject({ state: "queued", way: "after-turn" });
    await lab.server.sh(sandbox, "touch go");
    await runs.ended(id);
    expect(await message(id, "text Read later")).toMatchObject({ state: "delivered" });
    await visitor.page.getByText("Read later").first().waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("a message that interrupts ends what the agent does, and is delivered", async () => {
    const { id, sandbox } = await held();
    const visitor = await lab.visit(`/run/${id}`);
    await say(visitor, "Interrupt", "text Do this now");
    await eventually(
      () => message(id, "text Do this now"),
      (one) => one !== undefined && one.way === "urgent",
    );
    await eventually(
      () => lab.server.client.call("listAudit", { action: "run.interrupt" }),
      ({ records }) => records.some(({ target }) => target === id),
    );
    await lab.server.sh(sandbox, "touch go");
    await eventually(
      () => message(id, "text Do this now"),
      (one) => one?.state === "delivered",
    );
    await runs.ended(id);
    expect(visitor.troubles).toEqual([]);
  });

  test("a run is talked to with the thumb: the box is on the screen, and so is what became of the message", async () => {
    const { id, sandbox } = await held();
    const visitor = await lab.visit(`/run/${id}`, { phone: true });
    const { page } = visitor;
    await page.getByLabel("Message to the agent").scrollIntoViewIfNeeded();
    for (const what of [page.getByLabel("Message to the agent"), page.getByRole("button", { name: "Send" })]) {
      const box = await what.boundingBox();
      expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= 360).toBe(true);
      expect(box?.height).toBeGreaterThanOrEqual(44);
    }
    await say(visitor, "Steer", "Mind the phone", true);
    await page.getByRole("log", { name: "What became of your messages" }).getByText("Mind the phone").waitFor();
    await lab.shot(page, "talk-phone");
    expect(await seriousFaults(page)).toEqual([]);
    await lab.server.sh(sandbox, "touch go");
    await runs.ended(id);
    expect(await message(id, "Mind the phone")).toMatchObject({ state: "delivered" });
    expect(visitor.troubles).toEqual([]);
  });

  test("what the agent serves is shown beside its conversation", async () => {
    const { id, sandbox } = await held();
    const command = [process.execPath, "-e", SERVER];
    await lab.server.client.call("runCommand", { sandbox, command, background: true });
    const visitor = await lab.visit(`/run/${id}`);
    const { page } = visitor;
    await page
      .getByRole("region", { name: "Preview" })
      .getByRole("button", { name: String(PORT) })
      .click();
    await page.frameLocator("iframe.preview-frame").getByText("Served by the agent").waitFor();
    await page.getByLabel("Message to the agent").waitFor();
    await lab.picture(visitor, "run-preview");
    await lab.server.sh(sandbox, "touch go");
    await runs.ended(id);
    expect(visitor.troubles).toEqual([]);
  });

  test("a phone's terminal has keys that its keyboard lacks: the line before comes back, and ctrl C ends a program", async () => {
    await lab.server.create({ name: "keys" });
    const { page, troubles } = await lab.visit("/sandbox/keys?show=terminal", { phone: true });
    const rows = page.locator(".xterm-rows");
    await rows.getByText(/[#$]/).first().waitFor();
    await page.keyboard.type("echo once-$((40+2)) >> typed\n");
    const typed = () => lab.server.sh("keys", "cat typed 2>/dev/null").then(({ stdout }) => stdout);
    await eventually(typed, (text) => text === "once-42\n");
    const bar = page.locator(".keybar");
    const key = bar.getByRole("button", { name: "↑" });
    expect((await key.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await key.tap();
    await page.locator(".xterm-screen").tap();
    await page.keyboard.press("Enter");
    await eventually(typed, (text) => text === "once-42\nonce-42\n");
    await page.keyboard.type("sleep 1000\n");
    const programs = async () => (await lab.server.client.call("listProcesses", { sandbox: "keys" })).processes.map(({ name }) => name);
    await eventually(programs, (names) => names.includes("sleep"));
    await bar.getByRole("button", { name: /ctrl.?C/i }).tap();
    await eventually(programs, (names) => !names.includes("sleep"));
    await lab.shot(page, "terminal-phone");
    expect(troubles).toEqual([]);
  });

  test("log out ends the session of this browser and of no other", async () => {
    const other = await lab.visit("/machine?show=settings");
    const { page } = await lab.visit("/machine?show=settings");
    await page.getByRole("listitem").filter({ hasText: "this one" }).getByRole("button", { name: "Log out" }).click();
    await page.getByText("This browser is not logged in").waitFor();
    await page.reload();
    await page.getByText("This browser is not logged in").waitFor();
    await other.page.reload();
    await other.page.getByText("Browsers that are logged in").waitFor();
    expect(other.troubles).toEqual([]);
  });
});
