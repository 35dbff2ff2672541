/** DMN-1, DMN-2, POL-9: automations notice, try in clones, and change reality within the authority they have. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ACTING, AutomationLab, hashesOf } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** A project whose check is that the answer is right. */
const FILES = { "answer.txt": "41\n", "src/a.txt": "a\n", "check.sh": "grep -q '^4[0-9]$' answer.txt\n" };
const CHECK = "sh check.sh";
const FIX = "echo 42 > answer.txt";

describe("an automation", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: FILES });
    lab = new AutomationLab(server);
  });
  afterAll(async () => server?.remove());
  afterEach(async () => {
    for (const { id } of (await server.client.call("listAutomations", {})).automations)
      await server.client.call("removeAutomation", { automation: id }).catch(() => undefined);
    for (const [name, content] of Object.entries(FILES)) writeFileSync(join(server.project, name), content);
  });

  test("DMN-2: with the authority to act, a verified change is promoted, and no sandbox stays", async () => {
    await lab.add("fix", { run: [FIX], checks: [CHECK], authority: "act-and-log" });
    const firing = await lab.run("fix");
    expect(firing).toMatchObject({ state: "promoted", files: ["answer.txt"], triage: { way: "sandbox" }, count: 1 });
    expect(firing.steps.map(({ state }) => state)).toEqual(["seen", "triaged", "working", "verified", "promoted"]);
    expect(lab.read("answer.txt")).toBe("42\n");
    await eventually(
      async () => (await server.client.call("listSandboxes", {})).sandboxes,
      (left) => left.length === 0,
      20_000,
    );
  });

  test("DMN-2: with the authority to propose, a person decides; an approval says so in the firing", async () => {
    await lab.add("fix", { run: [FIX], checks: [CHECK] });
    const firing = await lab.run("fix");
    expect(firing).toMatchObject({ state: "waiting", files: ["answer.txt"], triage: { way: "propose" } });
    expect(lab.read("answer.txt")).toBe("41\n");
    await server.client.call("continuePromotion", { promotion: firing.promotion ?? "", approve: true, approver: server.approver() });
    await eventually(
      () => lab.look(firing.id),
      ({ state }) => state === "promoted",
    );
    expect(lab.read("answer.txt")).toBe("42\n");
    const second = await lab.run("fix");
    expect(second).toMatchObject({ state: "done", reason: "There was nothing to change." });
  });

  test("DMN-2: a proposal that a person takes back has failed, and reality is as it was", async () => {
    await lab.add("fix", { run: [FIX], checks: [CHECK] });
    const { id, promotion } = await lab.run("fix");
    await server.client.call("discardPromotion", { promotion: promotion ?? "" });
    expect(
      await eventually(
        () => lab.look(id),
        ({ state }) => state === "failed",
      ),
    ).toMatchObject({ endedAt: expect.any(String) });
    expect(lab.read("answer.txt")).toBe("41\n");
  });

  test("POL-9: triage says alert, direct, propose or sandbox, with its reason, and a test of it does nothing", async () => {
    const before = hashesOf(server.project);
    await lab.add("tells", { run: [FIX], authority: "alert-only" });
    await lab.add("looks", { run: ["cat answer.txt"], authority: "act-and-log" });
    await lab.add("sends", { run: ["git push origin main"], checks: [CHECK], authority: "act-and-log" });
    await lab.add("unproven", { run: [FIX], authority: "act-and-log", checks: [] });
    await lab.add("acts", { run: [FIX], checks: [CHECK], authority: "act-and-log" });
    const ways = [];
    for (const automation of ["tells", "looks", "sends", "unproven", "acts"]) {
      const { triage } = await server.client.call("testAutomation", { automation });
      expect(triage.reason).toMatch(/\.$/);
      ways.push(triage.way);
    }
    expect(ways).toEqual(["alert", "direct", "propose", "propose", "sandbox"]);
    expect(await lab.firings("acts")).toEqual([]);
    expect(hashesOf(server.project)).toEqual(before);
    expect(await lab.run("tells")).toMatchObject({ state: "alerted", experiment: null });
    expect(await lab.run("looks")).toMatchObject({ state: "done", output: "41\n", experiment: null });
    expect(hashesOf(server.project)).toEqual(before);
  });

  test("DMN-1: a file that is saved fires, several within the batch are one firing, and other files do not", async () => {
    await lab.add("fix", { when: { on: "files", paths: ["src/*"] }, batch: 400, run: [FIX], checks: [CHECK], authority: "act-and-log" });
    writeFileSync(join(server.project, "unrelated.txt"), "x");
    writeFileSync(join(server.project, "src/a.txt"), "one\n");
    mkdirSync(join(server.project, "src/new"), { recursive: true });
    await eventually(
      () => lab.firings("fix"),
      (all) => all.length === 1,
    );
    writeFileSync(join(server.project, "src/new/b.txt"), "two\n");
    const [firing, ...others] = await lab.ended("fix", 1);
    expect(others).toEqual([]);
    expect(firing).toMatchObject({ state: "promoted", kind: "files" });
    expect(firing?.seen[0]?.text).toContain("src/a.txt");
    rmSync(join(server.project, "src/new"), { recursive: true });
    expect((await lab.ended("fix", 2)).length).toBe(2);
    rmSync(join(server.project, "unrelated.txt"));
  });

  test("DMN-2: a fix after which reality is worse is undone by itself, and the trigger is muted with the reason", async () => {
    const flag = join(server.place, "outside");
    writeFileSync(flag, "41\n");
    const before = hashesOf(server.project);
    // The clone does not see what the machine compares the answer with.
    await lab.add("fix", { run: [FIX], checks: [CHECK], reality: [`cmp -s answer.txt ${flag}`], authority: "act-and-log" });
    const firing = await lab.run("fix");
    expect(firing).toMatchObject({ state: "undone", before: [{ passed: true }], after: [{ passed: false }], undo: expect.any(String) });
    expect(hashesOf(server.project)).toEqual(before);
    expect(await lab.state("fix")).toMatchObject({ state: "muted", reason: expect.stringContaining("cmp") });
    expect((await server.client.call("inspectPromotion", { promotion: firing.promotion ?? "" })).state).toBe("undone");
    expect(await server.client.call("resumeAutomation", { automation: "fix" })).toMatchObject({ state: "active", reason: null });
  });

  test("DMN-1: its own promotion triggers it again: the loop is seen and muted with a reason, and an edit of a person is none", async () => {
    await lab.add("count", {
      when: { on: "files", paths: ["answer.txt"] },
      run: ['n=$(cat answer.txt); test "$n" = 49 || echo $((n + 1)) > answer.txt'],
      checks: [CHECK],
      authority: "act-and-log",
    });
    writeFileSync(join(server.project, "answer.txt"), "43\n");
    const [loop, first] = await lab.ended("count", 2);
    expect(first).toMatchObject({ state: "promoted" });
    expect(loop).toMatchObject({ state: "muted", reason: expect.stringContaining("loop") });
    expect(lab.read("answer.txt")).toBe("44\n");
    writeFileSync(join(server.project, "answer.txt"), "45\n");
    const again = await lab.ended("count", 4);
    expect(again.map(({ state }) => state)).toEqual(["muted", "promoted", "muted", "promoted"]);
    expect(lab.read("answer.txt")).toBe("46\n");
    expect(await lab.state("count")).toMatchObject({ state: "active" });
  });

  test("DMN-2: what a person edits meanwhile wins", async () => {
    await lab.add("slow", {
      run: ["until test -e /tmp/go; do sleep 0.05; done; echo 42 > answer.txt"],
      checks: [CHECK],
      authority: "act-and-log",
    });
    const { id } = await server.client.call("runAutomation", { automation: "slow" });
    const sandbox = await lab.attempt(id);
    writeFileSync(join(server.project, "answer.txt"), "47\n");
    await server.sh(sandbox, "touch /tmp/go");
    expect(await lab.end(id)).toMatchObject({ state: "failed", reason: expect.stringContaining("answer.txt") });
    expect(lab.read("answer.txt")).toBe("47\n");
  });

  test("DMN-2: a dry run tries and verifies, and promotes nothing", async () => {
    await lab.add("dry", { run: [FIX], checks: [CHECK], authority: "act-and-log", dryRun: true });
    expect(await lab.run("dry")).toMatchObject({ state: "done", reason: "Dry run: 1 files would have been promoted.", promotion: null });
    expect(lab.read("answer.txt")).toBe("41\n");
  });

  test("DMN-2: removing an automation ends its work and keeps what was done", async () => {
    await lab.add("slow", { run: ["echo kept > kept.txt; sleep 600"], checks: [CHECK], authority: "act-and-log" });
    const { id } = await server.client.call("runAutomation", { automation: "slow" });
    const sandbox = await lab.attempt(id);
    const working = await lab.look(id);
    await eventually(
      () => server.sh(sandbox, "cat kept.txt"),
      ({ stdout }) => stdout === "kept\n",
    );
    await server.client.call("removeAutomation", { automation: "slow" });
    expect(await lab.end(id)).toMatchObject({ state: "failed", reason: expect.stringContaining("removed") });
    const experiment = await server.client.call("inspectExperiment", { experiment: working.experiment ?? "" });
    expect(experiment.state).toBe("cancelled");
    expect(experiment.attempts[0]?.snapshot).not.toBeNull();
    expect(existsSync(join(server.project, "kept.txt"))).toBe(false);
    await server.client.call("removeExperiment", { experiment: experiment.id });
  });

  test("two automations never work on one project at once unless they say so", async () => {
    const line = "until test -e /tmp/go; do sleep 0.05; done; touch made";
    for (const name of ["one", "two"]) await lab.add(name, { run: [line], checks: [CHECK], authority: "act-and-log" });
    await lab.add("three", { run: [line], checks: [CHECK], authority: "act-and-log", together: true });
    const ids: string[] = [];
    for (const automation of ["one", "two", "three"]) ids.push((await server.client.call("runAutomation", { automation })).id);
    await eventually(
      () => lab.look(ids[2] ?? ""),
      ({ state }) => state === "working",
      20_000,
    );
    expect(
      await eventually(
        () => lab.look(ids[1] ?? ""),
        ({ reason }) => reason !== null,
      ),
    ).toMatchObject({
      state: "seen",
      reason: "The automation one works on the project.",
    });
    for (const automation of ["one", "two", "three"]) await server.client.call("removeAutomation", { automation });
    for (const id of ids) await lab.end(id);
  });
});

describe("authority", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    const automations = { fix: { run: [FIX], checks: [CHECK], authority: "act-and-log" } };
    server = await TestServer.start({ config: { spares: false }, files: { ...FILES, "vivarium.json": JSON.stringify({ automations }) } });
  });
  afterAll(async () => server?.remove());

  test("DMN-2: is never more than the user's config allows, which is to propose if it says nothing", async () => {
    const lab = new AutomationLab(server);
    await expect(lab.add("more", { run: [FIX], authority: "act-and-log" })).rejects.toMatchObject({
      code: "denied",
      remedy: expect.stringContaining("automations.authority"),
    });
    const { automations } = await server.client.call("listAutomations", {});
    expect(automations).toEqual([]);
  });

  test("DMN-2: automations of vivarium.json wait for trust, have no more authority than the user's, and go with the file", async () => {
    const lab = new AutomationLab(server);
    await server.create({ name: "known" });
    expect((await server.client.call("listAutomations", {})).automations).toEqual([]);
    await server.client.call("trust", { project: server.project });
    const { automations } = await server.client.call("listAutomations", {});
    expect(automations).toMatchObject([{ name: "fix", source: "config", state: "active", authority: "propose-and-wait" }]);
    expect(await lab.run("fix")).toMatchObject({ state: "waiting", authority: "propose-and-wait" });
    await expect(server.client.call("removeAutomation", { automation: "fix" })).rejects.toMatchObject({ code: "illegal_transition" });
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ automations: { fix: { run: ["true"] } } }));
    expect((await server.client.call("listAutomations", {})).automations).toMatchObject([
      { state: "broken", reason: expect.stringContaining("viv trust") },
    ]);
    await expect(server.client.call("runAutomation", { automation: "fix" })).rejects.toMatchObject({ code: "illegal_transition" });
    writeFileSync(join(server.project, "vivarium.json"), "{}");
    expect((await server.client.call("listAutomations", {})).automations).toEqual([]);
  });
});
