/** The first screen: each kind of thing that needs a person shows by itself, says why, leads to its page, and goes when it is settled. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab, isLive } from "../support/browser-lab.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** Reality moves without an event: the page looks every ten seconds. */
const SEEN_MS = 25_000;

describe("what needs you (WEB-1)", needs("chromium", "root", "curl"), () => {
  let model: ScriptedModel;
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    // A request costs half a dollar.
    model = await ScriptedModel.open({ priced: [{ text: "hello", usage: { input: 500_000, output: 0, thinking: 0, cacheRead: 0 } }] });
    runs = RunLab.on(
      await TestServer.start({
        config: { models: { anthropic: { url: model.url, secret: "shared" } }, prices: { priced: { input: 1, output: 1 } } },
        files: { "both.txt": "one\n", "mine.txt": "one\n" },
      }),
    );
    viv(runs.server, ["secret", "set", "shared", "--host", new URL(model.url).host, "--all-projects"], { input: "not-used\n" });
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(async () => {
    model?.close();
    await lab?.close();
  });

  test("shows questions, failures, spent budgets, conflicts and stale sandboxes as they come, with the reason, and lets them go", async () => {
    const { server } = lab;
    const visitor = await lab.visit("/");
    const { page } = visitor;
    const list = page.locator("section").filter({ has: page.getByRole("heading", { name: /Needs you/ }) });
    const row = (text: string | RegExp): Locator => list.locator("li").filter({ hasText: text });
    /** The row of a thing with what it says below its name. */
    const says = (text: string, words: string | RegExp): Promise<void> =>
      row(text).locator(".under").filter({ hasText: words }).waitFor({ timeout: SEEN_MS });
    await list.getByText("Nothing waits for you.").waitFor();

    const asker = await server.create({ name: "asker", level: 2 });
    const asked = await server.client.call("decideAction", {
      sandbox: asker.id,
      action: { kind: "command", command: "git push origin main" },
    });
    const question = asked.approval?.id ?? "";
    await says("git push origin main", "asker wants to run");

    const failed = await runs.begin(["text I try", "exit 3"], { agent: { guardian: "off" } });
    await says("text I try", /^failed · claude .* ended with 3/);

    const spends = await runs.begin(["spend priced", "hold go"], { agent: { budget: 0.4, guardian: "off" } });
    await says("spend priced", /^over budget .* \$0\.50 of \$0\.40/);

    await server.create({ name: "both-changed" });
    await server.sh("both-changed", "echo theirs > both.txt");
    await server.create({ name: "left-behind" });
    await server.sh("left-behind", "echo more > other.txt");
    writeFileSync(join(server.project, "both.txt"), "ours\n");
    await says("both-changed", "changed here and in reality: both.txt");
    await says("left-behind", /^stale · 1 file moved in reality: both\.txt · 1 file changed here/);
    await lab.picture(visitor, "home-needs-you");

    for (const [text, path] of [
      ["git push origin main", `/question/${question}`],
      ["text I try", `/run/${failed.id}`],
      ["spend priced", `/run/${spends.id}`],
      ["both-changed", "/review/both-changed"],
      ["left-behind", "/sandbox/left-behind"],
    ] as const)
      await leads(page, row(text), path);

    await server.client.call("answerApproval", { approval: question, answer: "deny", approver: server.approver() });
    await row("git push origin main").waitFor({ state: "detached" });
    await server.client.call("refreshSandbox", { sandbox: "left-behind" });
    await row("left-behind").waitFor({ state: "detached", timeout: SEEN_MS });
    await server.client.call("stopRun", { run: spends.id });
    await row("spend priced").waitFor({ state: "detached" });
    // What is not settled is still there.
    expect(await row("text I try").count()).toBe(1);
    expect(await row("both-changed").count()).toBe(1);
    expect(visitor.troubles).toEqual([]);
  });
});

async function leads(page: Page, row: Locator, path: string): Promise<void> {
  await row.getByRole("link").click();
  await eventually(
    () => new URL(page.url()).pathname,
    (shown) => shown === path,
  );
  await page.goBack();
  await isLive(page);
  await row.waitFor();
}
