/** Questions in a real browser: which agent asks, what is asked, and answers with the thumb. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { seriousFaults } from "../support/accessible.ts";
import { BrowserLab } from "../support/browser-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** What a phone shows above its bar without scrolling. */
const FIRST_SCREEN = 740 - 56;

describe("questions in the dashboard (WEB-1, POL-5)", needs("chromium", "root"), () => {
  let runs: RunLab;
  let lab: BrowserLab;

  beforeAll(async () => {
    runs = await RunLab.open();
    writeFileSync(join(runs.server.project, "vivarium.json"), JSON.stringify({ policy: { level: 2 } }));
    viv(runs.server, ["trust", runs.server.project, "--yes"]);
    lab = await BrowserLab.before(runs.server);
  });

  afterAll(() => lab.close());

  /** An agent that asks for this line, and the question. */
  async function ask(line: string): Promise<{ run: string; id: string }> {
    const { id: run } = await runs.begin([`call ${line}`, "text It goes on"]);
    const { approvals } = await eventually(
      () => lab.server.client.call("listApprovals", {}),
      (answer) => answer.approvals.some(({ target }) => target.includes(line)),
    );
    return { run, id: approvals.find(({ target }) => target.includes(line))?.id ?? "" };
  }

  const state = (id: string) => lab.server.client.call("inspectApproval", { approval: id });

  test("a phone shows agent, run, action and consequence first, and allows once with one tap", async () => {
    const { run, id } = await ask("git push origin main");
    const desk = await lab.visit(`/question/${id}`);
    await desk.page.getByText("git push origin main").first().waitFor();
    await lab.picture(desk, "question");
    const phone = await lab.visit(`/question/${id}`, { phone: true });
    const { page } = phone;
    const who = page.getByRole("definition").filter({ hasText: "claude" }).getByRole("link", { name: "call git push origin main" });
    await who.waitFor();
    expect(await who.getAttribute("href")).toBe(`/run/${run}`);
    for (const name of ["Allow once", "Deny"]) {
      const place = await page.getByRole("button", { name, exact: true }).boundingBox();
      expect((place?.y ?? 0) + (place?.height ?? 0), name).toBeLessThan(FIRST_SCREEN);
      expect(place?.height, name).toBeGreaterThanOrEqual(44);
    }
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Allow once" }).tap();
    await page
      .getByText(/^(approved|used)$/)
      .first()
      .waitFor();
    await desk.page
      .getByText(/^(approved|used)$/)
      .first()
      .waitFor();
    expect(await state(id)).toMatchObject({ scope: "once" });
    await runs.ended(run);
    expect([...desk.troubles, ...phone.troubles]).toEqual([]);
  });

  test("a phone denies with one tap, and the agent is told", async () => {
    const { run, id } = await ask("git push origin other");
    const { page, troubles } = await lab.visit(`/question/${id}`, { phone: true });
    await page.getByRole("button", { name: "Deny", exact: true }).tap();
    await page.getByText("denied", { exact: true }).first().waitFor();
    expect(await state(id)).toMatchObject({ state: "denied" });
    const denied = await runs.waitForEvent(run, "tool_result");
    expect(denied.output).toContain("hook error");
    await runs.ended(run);
    expect(troubles).toEqual([]);
  });

  test("always shows the rule that it adds, takes one more tap, and the same is not asked again", async () => {
    const { run, id } = await ask("git push origin third");
    const visitor = await lab.visit(`/question/${id}`, { phone: true });
    const { page } = visitor;
    const { always } = await state(id);
    await page.getByRole("button", { name: "Always allow" }).tap();
    await page
      .getByText("This rule is added for the project:")
      .getByText(always ?? "no rule")
      .waitFor();
    expect((await state(id)).state).toBe("waiting");
    await lab.shot(page, "question-always");
    await page.getByRole("button", { name: "Back" }).tap();
    await page.getByRole("button", { name: "Always allow" }).tap();
    await page.getByRole("button", { name: "Yes, always allow this" }).tap();
    await page
      .getByText(/^(approved|used)$/)
      .first()
      .waitFor();
    expect(await state(id)).toMatchObject({ scope: "always" });
    await runs.ended(run);
    const again = await runs.begin(["call git push origin third", "text It goes on"]);
    await runs.ended(again.id);
    const { approvals } = await lab.server.client.call("listApprovals", { all: true });
    expect(approvals.filter(({ target }) => target === "git push origin third")).toHaveLength(1);
    expect(visitor.troubles).toEqual([]);
  });

  test("a question that no agent asks names the sandbox", async () => {
    const box = await lab.server.create({ name: "asker", level: 2 });
    const action = { kind: "command" as const, command: "git push origin fourth" };
    const { approval } = await lab.server.client.call("decideAction", { sandbox: box.id, action });
    const { page, troubles } = await lab.visit(`/question/${approval?.id ?? ""}`);
    await page.getByText("A program in").getByRole("link", { name: "asker" }).waitFor();
    expect(troubles).toEqual([]);
  });
});
