/** Runs, experiments, reviews and questions in a real browser, with an agent that does what its task says. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const CODE = `export function total(prices) {\n  let sum = 0;\n  for (const price of prices) sum += price;\n  return sum;\n}\n`;

describe("work in the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    runs = await RunLab.open();
    writeFileSync(join(runs.server.project, "total.js"), CODE);
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(() => lab.close());

  test("shows a run as it grows, takes a message for it, and tells the message's fate", async () => {
    const { id } = await runs.begin(
      [`text I look at the prices ${HOSTILE}`, "call sed -i s/sum/whole/g total.js; echo changed", "hold go", "text That is all"],
      {
        agent: { steps: 20, budget: 2 },
      },
    );
    await runs.waitForEvent(id, "tool_result");
    const visitor = await lab.visit(`/run/${id}`);
    const { page } = visitor;
    await page.getByText("I look at the prices").first().waitFor();
    await page.getByText("Bash").first().click();
    await page.getByText("changed", { exact: true }).waitFor();
    await page.getByLabel("Message to the agent").fill("Mind the empty list");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("queued").or(page.getByText("sent, not confirmed yet")).or(page.getByText("delivered")).first().waitFor();
    await page.getByText(/^Changed .*total\.js/).waitFor();
    await lab.picture(visitor, "run");
    await page.getByRole("link", { name: "Terminal" }).click();
    await page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
    await page.keyboard.type("echo beside-$((40+2))\n");
    await page.locator(".xterm-rows").getByText("beside-42").first().waitFor();
    await lab.picture(visitor, "run-terminal");
    const { sandbox } = await lab.server.client.call("inspectRun", { run: id });
    await lab.server.sh(sandbox ?? "", "touch go");
    await runs.ended(id);
    await page.getByText("See the verdict").waitFor();
    const { messages } = await lab.server.client.call("listRunMessages", { run: id });
    expect(messages.find(({ text }) => text === "Mind the empty list")?.state).toBe("delivered");
    expect(await page.title()).not.toBe("owned");
    expect(visitor.troubles).toEqual([]);
  });

  test("compares attempts, shows the verdict with its reason, promotes the winner and takes it back", async () => {
    const { client, project } = lab.server;
    const file = join(project, "total.js");
    const { id } = await client.call("startExperiment", {
      project,
      attempts: [
        { name: "rename", command: "sed -i 's/total(/sumOf(/' total.js" },
        { name: "broken", command: "echo 'export {' > total.js; echo it is late" },
        { name: "guard", command: "sed -i 's/let sum/if (prices.length === 0) return 0;\\n  let sum/' total.js" },
      ],
      checks: ["node --check total.js", "grep -q 'prices.length' total.js"],
      env: { PATH: process.env["PATH"] ?? "" },
    });
    const visitor = await lab.visit(`/experiment/${id}`);
    const { page } = visitor;
    await page.getByText("guard won").first().waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "broken", exact: false }).first().click();
    await page.getByText("Checks in the state it left").waitFor();
    await page.getByText("1 file would be written or deleted.").waitFor();
    await page.getByLabel("The one").selectOption("guard");
    await page.getByLabel("The other").selectOption("rename");
    await page.waitForURL("**compare=guard,rename**");
    const halves = page.locator(".pair .half");
    await halves.nth(0).locator("diffs-container").getByText("length").first().waitFor();
    await halves.nth(1).locator("diffs-container").getByText("sumOf").first().waitFor();
    await page.reload();
    await page.getByText("Checks in the state it left").waitFor();
    await halves.nth(1).locator("diffs-container").getByText("sumOf").first().waitFor();
    await lab.picture(visitor, "experiment");
    await page.getByRole("button", { name: "Promote guard" }).click();
    await page.getByText("The change is in reality.").waitFor({ timeout: 60_000 });
    expect(readFileSync(file, "utf8")).toContain("prices.length");
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await eventually(
      () => readFileSync(file, "utf8"),
      (text) => text === CODE,
    );
    await page.getByText("undone").first().waitFor();
    const home = await lab.visit("/");
    await home.page.getByText(/^undone · /).waitFor();
    await lab.picture(home, "home");
    expect([...visitor.troubles, ...home.troubles]).toEqual([]);
  });

  test("shows attempts as they run: what they do now, and how their changes grow, against each other", async () => {
    const { client, project } = lab.server;
    const { id } = await client.call("startExperiment", {
      project,
      attempts: ["one", "two"].map((name) => ({
        name,
        command: `echo '// ${name} begins' >> total.js; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo '// ${name} ends' >> total.js`,
      })),
      checks: ["node --check total.js"],
      pick: "ask",
      env: { PATH: process.env["PATH"] ?? "" },
    });
    const visitor = await lab.visit(`/experiment/${id}`);
    const { page } = visitor;
    await page.getByText("works").first().waitFor();
    const halves = page.locator(".pair .half");
    await halves.nth(0).locator("diffs-container").getByText("begins").first().waitFor({ timeout: 30_000 });
    await halves.nth(1).locator("diffs-container").getByText("begins").first().waitFor({ timeout: 30_000 });
    await page.getByRole("cell", { name: "+1 −0" }).first().waitFor();
    await lab.picture(visitor, "experiment-runs");
    for (const { sandbox } of (await client.call("inspectExperiment", { experiment: id })).attempts)
      await lab.server.sh(sandbox ?? "", "touch /tmp/go");
    await page.getByText("you choose the winner").first().waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Pick two as the winner" }).click();
    await page.getByText("two won").first().waitFor();
    await page.getByRole("button", { name: "Promote two" }).waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("reviews a change: risky files first, a comment on a line reaches the agent, viewed marks go when the file changes", async () => {
    const { id } = await runs.begin([
      "call sed -i 's/let sum/const start = prices.length;\\n  let sum/' total.js; mkdir -p .github/workflows; echo 'on: push' > .github/workflows/x.yml",
      "hold go",
      "text Done",
    ]);
    await runs.waitForEvent(id, "tool_result");
    const { sandbox } = await runs.until(id, (run) => run.sandbox !== null);
    const visitor = await lab.visit(`/review/${sandbox ?? ""}`);
    const { page } = visitor;
    const cards = page.locator("article.file");
    await cards.nth(1).waitFor();
    expect(await cards.nth(0).locator("header code").textContent()).toBe(".github/workflows/x.yml");
    await cards.nth(0).getByText("risky").waitFor();
    const total = page.locator('[id="file-total.js"]');
    const lines = total.locator("diffs-container");
    await lines.getByText("start").first().waitFor();
    await lines.locator('[data-column-number="2"]').last().click();
    await page.getByPlaceholder("What should the agent change here?").fill("Do not keep this");
    await lab.picture(visitor, "review");
    await page.getByRole("button", { name: "Send 1 comment to the agent" }).click();
    await page.getByText("Your comments went to the agent.").waitFor();
    const { messages } = await lab.server.client.call("listRunMessages", { run: id });
    expect(messages.at(-1)?.text).toContain("total.js, line 2: Do not keep this");
    await total.getByLabel("Viewed").check();
    await page.reload();
    await total.locator("input:checked").waitFor();
    expect(await lines.count()).toBe(0);
    await lab.server.sh(sandbox ?? "", "echo '// more' >> total.js; touch go");
    // The page is not loaded again: it looks for itself.
    await lines.getByText("more").first().waitFor();
    expect(await total.getByLabel("Viewed").isChecked()).toBe(false);
    expect(visitor.troubles).toEqual([]);
    await runs.ended(id);
  });

  test("shows where a change and reality can't both be kept, as soon as reality moves, and does not promote that", async () => {
    const { server } = lab;
    const file = join(server.project, "both.txt");
    writeFileSync(file, "one\n");
    const box = await server.create({ name: "late" });
    await server.sh(box.id, "echo theirs > both.txt; echo more > other.txt");
    const visitor = await lab.visit("/review/late");
    const { page } = visitor;
    const promote = page.getByRole("button", { name: "Promote", exact: true });
    await promote.and(page.locator(":enabled")).waitFor();
    writeFileSync(file, "ours\n");
    const card = page.locator("article.file").first();
    await card.getByText("conflict", { exact: true }).waitFor();
    expect(await card.locator("header code").textContent()).toBe("both.txt");
    expect(await promote.isDisabled()).toBe(true);
    await lab.picture(visitor, "review-conflict");
    expect(readFileSync(file, "utf8")).toBe("ours\n");
    expect(visitor.troubles).toEqual([]);
  });

  test("approves a promotion that waits at a stage, and takes it back from the same page", async () => {
    const { server } = lab;
    const box = await server.create({ name: "asks-first" });
    await server.sh(box.id, "echo asked > asked.txt");
    const { id } = await server.client.call("promote", { sandbox: box.id, ask: true, message: "Ask first" });
    const visitor = await lab.visit(`/review/${id}`);
    const { page } = visitor;
    await page.getByText("goes on when a person allows it").waitFor();
    await lab.picture(visitor, "promotion-waits");
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByText("The change is in reality.").waitFor();
    expect(readFileSync(join(server.project, "asked.txt"), "utf8")).toBe("asked\n");
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await eventually(
      () => existsSync(join(server.project, "asked.txt")),
      (isThere) => !isThere,
    );
    expect(visitor.troubles).toEqual([]);
  });

  test("lets a browser that a program logged in look, and not answer (AP-19)", async () => {
    const box = await lab.server.create({ name: "asker-two", level: 2 });
    const asked = await lab.server.client.call("decideAction", {
      sandbox: box.id,
      action: { kind: "command", command: "git push origin two" },
    });
    const { page } = await lab.visit(`/question/${asked.approval?.id ?? ""}`, { asProgram: true });
    await page.getByText("This browser may look, and not answer").waitFor();
    expect(await page.getByRole("button", { name: "Allow once" }).count()).toBe(0);
  });
});
