/** DMN-2: what is promoted is judged by reality; what is worse is undone, and what can't be is said. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTING, AutomationLab, hashesOf } from "../support/automations.ts";
import { RequestCatcher } from "../support/push-service.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** What only the real machine has: the line that runs there after a promotion. */
const STAGES = [
  { name: "verified", apply: "verify" },
  { name: "dev", apply: "folder", after: ["sh deploy.sh"] },
];

describe("a promotion of an automation", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  let catcher: RequestCatcher;
  const save = (name: string, text: string): void => writeFileSync(join(server.project, name), text);
  const told = (): Record<string, unknown>[] => catcher.received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);

  beforeAll(async () => {
    catcher = await RequestCatcher.start();
    const channels = { hook: { type: "webhook", url: catcher.origin } };
    const files = { "answer.txt": "41\n", "deploy.sh": "true\n", "vivarium.json": JSON.stringify({ stages: STAGES }) };
    server = await TestServer.start({ config: { ...ACTING, notifications: { channels } }, files });
    lab = new AutomationLab(server);
    await server.client.call("trust", { project: server.project });
  });
  afterAll(async () => {
    await server?.remove();
    await catcher?.close();
  });

  /** What the line after a promotion does, until `work` is over. */
  async function deploying<T>(line: string, work: () => Promise<T>): Promise<T> {
    save("deploy.sh", `${line}\n`);
    await server.client.call("trust", { project: server.project });
    try {
      return await work();
    } finally {
      save("deploy.sh", "true\n");
      save("vivarium.json", JSON.stringify({ stages: STAGES }));
      await server.client.call("trust", { project: server.project });
    }
  }

  test("after which the project's own checks fail in a clone of reality is undone, and a person is told of it once", async () => {
    const check = "test ! -e deployed";
    await lab.add("worse", { run: ["echo 42 > answer.txt"], checks: [check], authority: "act-and-log" });
    const firing = await deploying("touch deployed", () => lab.run("worse"));
    expect(firing).toMatchObject({
      state: "undone",
      before: [{ command: check, passed: true }],
      after: [{ command: check, passed: false }],
      reason: expect.stringContaining("It was undone, and the automation is muted."),
    });
    expect(lab.read("answer.txt")).toBe("41\n");
    expect(await lab.state("worse")).toMatchObject({ state: "muted", reason: expect.stringContaining(check) });
    // The notification of what comes next shows that no second one of this was under way.
    await lab.add("tells", { run: ["true"], authority: "alert-only" });
    const alerted = await lab.run("tells");
    await catcher.count(2);
    expect(told()).toMatchObject([
      { kind: "failed", title: "Automation worse", link: `/firing/${firing.id}` },
      { kind: "failed", title: "Automation tells", link: `/firing/${alerted.id}` },
    ]);
    await server.client.call("removeAutomation", { automation: "worse" });
  });

  test("after which the setup of the checks fails, so that none runs, is undone", async () => {
    const spec = { run: ["echo 42 > answer.txt"], setup: "test ! -e broken", checks: ["test -s answer.txt"] };
    await lab.add("setup", { ...spec, authority: "act-and-log" });
    const firing = await deploying("touch broken", () => lab.run("setup"));
    expect(firing).toMatchObject({ state: "undone", after: [{ command: "test ! -e broken", passed: false }] });
    expect(firing.reason).toContain("`test -s answer.txt` passed before the promotion and did not run after it");
    expect(lab.read("answer.txt")).toBe("41\n");
  });

  test("is judged with the automation's own time for a check", { timeout: 90_000 }, async () => {
    const checks = ["test ! -e slow || sleep 600"];
    await lab.add("slow", { run: ["echo 42 > answer.txt"], checks, timeout: "5s", authority: "act-and-log" });
    const firing = await deploying("touch slow", () => lab.run("slow"));
    expect(firing).toMatchObject({ state: "undone", after: [{ cause: "timeout" }] });
    expect(lab.read("answer.txt")).toBe("41\n");
  });

  test("of a project that moved meanwhile is verified with the automation's own time for a check", { timeout: 90_000 }, async () => {
    const run = ["until test -e /tmp/go; do sleep 0.05; done; echo 42 > answer.txt"];
    await lab.add("moved", { run, checks: ["test ! -e slower || sleep 600"], timeout: "5s", authority: "act-and-log" });
    const { id } = await server.client.call("runAutomation", { automation: "moved" });
    const sandbox = await lab.attempt(id);
    save("slower", "");
    await server.sh(sandbox, "touch /tmp/go");
    expect(await lab.end(id)).toMatchObject({ state: "failed", reason: expect.stringContaining("checks do not pass") });
    expect(lab.read("answer.txt")).toBe("41\n");
  });

  test("that is worse and was edited since could not be undone: the firing and the automation say so", async () => {
    const reality = ['test "$(cat answer.txt)" = 41 || { echo 48 > answer.txt; false; }'];
    await lab.add("stuck", { run: ["echo 42 > answer.txt"], checks: ["test -s answer.txt"], reality, authority: "act-and-log" });
    const firing = await lab.run("stuck");
    expect(firing).toMatchObject({ state: "promoted", reason: expect.stringMatching(/could not be undone: .*The automation is muted\.$/) });
    expect(await lab.state("stuck")).toMatchObject({ state: "muted", reason: expect.stringContaining("could not be undone") });
    expect(lab.read("answer.txt")).toBe("48\n");
    save("answer.txt", "41\n");
  });

  test("that can't be judged stands: the firing and the automation say so", async () => {
    await lab.add("blind", { run: ["echo 42 > answer.txt"], checks: ["test -s answer.txt"], authority: "act-and-log" });
    const firing = await deploying("echo '{' > vivarium.json", () => lab.run("blind"));
    expect(firing).toMatchObject({ state: "promoted", reason: expect.stringContaining("could not be judged") });
    expect(await lab.state("blind")).toMatchObject({ state: "muted", reason: expect.stringContaining("could not be judged") });
    expect(lab.read("answer.txt")).toBe("42\n");
  });

  test("that a person took back is undone in its firing and in the report, also where the person had approved it", async () => {
    save("answer.txt", "41\n");
    const before = hashesOf(server.project);
    await lab.add("fine", { run: ["echo 42 > answer.txt"], checks: ["test -s answer.txt"], authority: "act-and-log" });
    await lab.add("asks", { run: ["echo 43 > answer.txt"], checks: ["test -s answer.txt"] });
    const acted = await lab.run("fine");
    expect(acted.state).toBe("promoted");
    await server.client.call("undoPromotion", { promotion: acted.promotion ?? "" });
    const asked = await lab.run("asks");
    await server.client.call("continuePromotion", { promotion: asked.promotion ?? "", approve: true, approver: server.approver() });
    await server.client.call("undoPromotion", { promotion: asked.promotion ?? "" });
    for (const { id } of [acted, asked])
      expect(
        await eventually(
          () => lab.look(id),
          ({ state }) => state === "undone",
        ),
      ).toMatchObject({ reason: "A person took it back.", undo: expect.stringMatching(/^prm/) });
    expect(hashesOf(server.project)).toEqual(before);
    expect(await lab.state("fine")).toMatchObject({ state: "active", last: { state: "undone" } });
    const { out } = viv(server, ["report"]);
    expect(out).not.toMatch(/^Promoted \(\d+\)\n(?: .*\n)* {2}\S+ {2}(?:fine|asks)/m);
    expect(out).toMatch(/ fine in .*: A person took it back\./);
  });

  test("that is proposed a second time while the first waits is not proposed again", async () => {
    save("answer.txt", "41\n");
    await lab.add("nightly", { run: ["echo 42 > answer.txt"], checks: ["test -s answer.txt"] });
    const first = await lab.run("nightly");
    expect(first.state).toBe("waiting");
    const second = await lab.run("nightly");
    expect(second).toMatchObject({ state: "done", promotion: null });
    expect(second.reason).toBe(`The same change waits for a person already, as the promotion ${first.promotion ?? ""}.`);
    await server.client.call("discardPromotion", { promotion: first.promotion ?? "" });
    expect(await lab.run("nightly")).toMatchObject({ state: "waiting" });
    expect(readFileSync(join(server.project, "answer.txt"), "utf8")).toBe("41\n");
  });
});
