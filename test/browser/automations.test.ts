/** Automations, their firings and the morning report in a real browser. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { AutomationLab } from "../support/automations.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const CHECK = "grep -q '^4[0-9]$' answer.txt";

describe("automations in the dashboard (WEB-1, DMN-1)", needs("chromium", "root"), () => {
  let lab: BrowserLab;
  let automations: AutomationLab;
  const answer = (): string => readFileSync(join(lab.server.project, "answer.txt"), "utf8");

  beforeAll(async () => {
    const runs = await RunLab.open({ spares: false, automations: { authority: "act-and-log" } });
    writeFileSync(join(runs.server.project, "answer.txt"), "41\n");
    mkdirSync(join(runs.server.project, "src"));
    lab = await BrowserLab.before(runs.server);
    automations = new AutomationLab(runs.server);
  });

  afterAll(() => lab.close());

  test("an empty list and an empty report say what to type", async () => {
    const visitor = await lab.visit("/automation");
    await visitor.page.getByText("There is no automation.").waitFor();
    await visitor.page.getByText("viv automation add deps").first().waitFor();
    await lab.picture(visitor, "automations-empty");
    await visitor.page.getByRole("link", { name: "What they did since yesterday" }).click();
    await visitor.page.getByText(/No automation has fired since/).waitFor();
    await lab.picture(visitor, "report-empty");
    expect(visitor.troubles).toEqual([]);
  });

  test("a proposal is seen live from its trigger on, decided on its page, and taken back there", async () => {
    await automations.add("upgrade", {
      when: { on: "schedule", cron: "0 3 * * *", timezone: "Europe/Berlin" },
      run: ["echo 42 > answer.txt", "echo fourty > answer.txt"],
      checks: [CHECK],
      budget: { run: 2, night: 10 },
      quiet: { from: "08:00", to: "18:00", timezone: "Europe/Berlin" },
    });
    const visitor = await lab.visit("/automation");
    const { page } = visitor;
    await page.getByText("waits for 03:00 every day (Europe/Berlin)").waitFor();
    await page.getByText("has not fired").waitFor();
    await page.getByRole("button", { name: "What would it do? upgrade" }).click();
    await page.getByText("What it would do now; nothing was done.").waitFor();
    await page.getByText("Try it in a sandbox, and propose it.").waitFor();
    await lab.picture(visitor, "automations-would");
    await page.getByRole("button", { name: "Run now: upgrade" }).click();
    await page.waitForURL("**/firing/**");
    await page.getByText("waits for you").first().waitFor({ timeout: 60_000 });
    await page.getByText("A person started it.").first().waitFor();
    await page.getByText("its authority is to propose").first().waitFor();
    await page.getByText("`grep -q '^4[0-9]$' answer.txt` fails").waitFor();
    await lab.picture(visitor, "firing-waits");
    expect(answer()).toBe("41\n");
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByText("promoted", { exact: true }).first().waitFor();
    await page.getByText("The change is in reality.").waitFor();
    expect(answer()).toBe("42\n");
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await eventually(answer, (text) => text === "41\n");
    await page.getByText("undone").first().waitFor();
    expect(visitor.troubles).toEqual([]);
  });

  test("texts of callers are shown as text, a firing that has not begun says why, and pausing keeps it", async () => {
    await automations.add("late", {
      when: { on: "files", paths: ["src/*"] },
      task: "text I mend it\ncall echo 43 > answer.txt; echo done",
      checks: [CHECK],
      batch: 600_000,
    });
    writeFileSync(join(lab.server.project, "src", `${HOSTILE.replaceAll("/", "∕")}.txt`), "x");
    const [firing] = await eventually(
      () => automations.firings("late"),
      (all) => all.length === 1,
    );
    const visitor = await lab.visit(`/firing/${firing?.id ?? ""}`);
    const { page } = visitor;
    await page.getByText("More may come that belongs to it: it begins at").first().waitFor();
    await page.getByText("onerror=").first().waitFor();
    await page.getByRole("link", { name: "late" }).first().click();
    await page.getByRole("button", { name: "Pause: late" }).click();
    await page.getByText("A person paused it.").waitFor();
    await page.getByText("not begun · The automation is paused: this begins when it is resumed.").waitFor();
    await lab.picture(visitor, "automation-paused");
    await page.getByRole("button", { name: "Run now: late" }).click();
    await page.getByText("waits for you").first().waitFor({ timeout: 60_000 });
    await page.locator('a.item[href^="/run/"]').waitFor();
    await lab.picture(visitor, "firing-agent");
    expect(await page.title()).not.toBe("owned");
    expect(visitor.troubles).toEqual([]);
  });

  test("a fix that made reality worse shows why it was undone, and the muted automation asks on the first page", async () => {
    const flag = join(lab.server.place, "outside");
    writeFileSync(flag, "41\n");
    await automations.add("worse", {
      run: ["echo 44 > answer.txt"],
      checks: [CHECK],
      reality: [`cmp answer.txt ${flag}`],
      authority: "act-and-log",
    });
    const { id } = await automations.run("worse");
    const visitor = await lab.visit(`/firing/${id}`);
    const { page } = visitor;
    await page.getByText("passed before, ended with 1 after it").waitFor();
    await page.getByText("It was taken back.").waitFor();
    await lab.picture(visitor, "firing-undone");
    expect(answer()).toBe("41\n");
    const home = await lab.visit("/");
    await home.page.getByText(/^muted: `cmp/).waitFor();
    await lab.picture(home, "home-muted");
    await home.page.getByRole("link", { name: "What automations did" }).click();
    await home.page.getByRole("heading", { name: "Stopped themselves" }).waitFor();
    await home.page.getByRole("heading", { name: "Undone" }).waitFor();
    await home.page.getByRole("heading", { name: "Waits for you" }).waitFor();
    await lab.picture(home, "report");
    await home.page.keyboard.press("g");
    await home.page.keyboard.press("a");
    await home.page.getByRole("button", { name: "Resume: worse" }).waitFor();
    await lab.picture(home, "automations");
    await home.page.getByRole("button", { name: "Resume: worse" }).click();
    await home.page.getByRole("button", { name: "Pause: worse" }).waitFor();
    await home.page.getByText("worse", { exact: true }).click();
    await home.page.getByRole("button", { name: "Remove", exact: true }).click();
    await home.page.getByRole("button", { name: "Remove worse now" }).click();
    await home.page.waitForURL("**/automation");
    await eventually(
      async () => (await lab.server.client.call("listAutomations", {})).automations.map(({ name }) => name),
      (names) => !names.includes("worse"),
    );
    expect([...visitor.troubles, ...home.troubles]).toEqual([]);
  });
});
