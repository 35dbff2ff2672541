/** DMN-1, DMN-2: a server that is killed between trigger and promotion: each firing acts once, never twice, none is lost. */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ACTING, AutomationLab } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const POINTS = [
  "firing.seen",
  "firing.triaged",
  "firing.working",
  "experiment.row",
  "firing.started",
  "experiment.origin",
  "experiment.baseline",
  "experiment.attempt",
  "experiment.cloned",
  "experiment.ran",
  "experiment.frozen",
  "experiment.verified",
  "experiment.ended",
  "experiment.chosen",
  "firing.verified",
  "firing.promoting",
  "promotion.begun",
  "promote.staged",
  "promote.journalled",
  "promote.half",
  "promote.applied",
  "promote.synced",
  "promote.committed",
  "promote.cleaned",
  "firing.applied",
  "firing.promoted",
  "firing.ended",
];

describe("a server that is killed", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  let trigger: string;

  beforeAll(async () => {
    server = await TestServer.start({
      config: ACTING,
      files: { "count.txt": "0\n", "in/trigger.txt": "0\n", "check.sh": "test -s count.txt\n" },
    });
    lab = new AutomationLab(server);
    trigger = join(server.project, "in/trigger.txt");
    await lab.add("count", {
      when: { on: "files", paths: ["in/*"] },
      run: ["echo $(($(cat count.txt) + 1)) > count.txt"],
      checks: ["sh check.sh"],
      authority: "act-and-log",
    });
  });
  afterAll(async () => server?.remove());
  beforeEach(() => writeFileSync(join(server.project, "count.txt"), "0\n"));

  async function promotions(): Promise<number> {
    const { promotions: all } = await server.client.call("listPromotions", { all: true });
    return all.filter(({ state, kind }) => state === "applied" && kind === "promotion").length;
  }

  for (const point of POINTS) {
    test(`at ${point} loses no firing and acts once`, async () => {
      const before = (await lab.firings("count")).length;
      const applied = await promotions();
      await server.arm(point);
      appendFileSync(trigger, "x\n");
      await server.died();
      await server.up();
      const [firing] = await lab.ended("count", before + 1);
      expect(firing).toMatchObject({ state: "promoted" });
      expect(readFileSync(join(server.project, "count.txt"), "utf8")).toBe("1\n");
      expect(await promotions()).toBe(applied + 1);
      expect((await lab.firings("count")).length).toBe(before + 1);
    });
  }

  for (const point of ["firing.judged", "promotion.undo", "firing.taken-back"]) {
    test(`at ${point} undoes what is worse once, and reality is as it was`, async () => {
      const outside = join(server.place, "outside");
      writeFileSync(outside, "0\n");
      const name = `worse-${point.replace(".", "-")}`;
      await lab.add(name, {
        run: ["echo 7 > count.txt"],
        checks: ["sh check.sh"],
        reality: [`cmp -s count.txt ${outside}`],
        authority: "act-and-log",
      });
      await server.arm(point);
      const { id } = await server.client.call("runAutomation", { automation: name });
      await server.died();
      await server.up();
      expect(await lab.end(id)).toMatchObject({ state: "undone" });
      expect(readFileSync(join(server.project, "count.txt"), "utf8")).toBe("0\n");
      expect(await lab.state(name)).toMatchObject({ state: "muted" });
      const { promotions: all } = await server.client.call("listPromotions", { all: true });
      const { promotion } = await lab.look(id);
      expect(all.filter(({ undoes, state }) => undoes === promotion && state === "applied")).toHaveLength(1);
    });
  }

  for (const point of ["promotion.begun", "promote.journalled", "promote.applied", "promote.committed"]) {
    test(`at ${point} while a person approves a proposal writes it whole or not at all, and the firing says which`, async () => {
      const name = `proposes-${point.replace(".", "-")}`;
      await lab.add(name, { run: ["echo 8 > count.txt"], checks: ["sh check.sh"] });
      const { id, promotion } = await lab.run(name);
      expect(await lab.look(id)).toMatchObject({ state: "waiting" });
      const approve = (): Promise<unknown> =>
        server.client.call("continuePromotion", { promotion: promotion ?? "", approve: true, approver: server.approver() });
      await server.dieAt(point, approve);
      const found = await eventually(
        () => server.client.call("inspectPromotion", { promotion: promotion ?? "" }),
        ({ state }) => state !== "planning" && state !== "applying",
      );
      if (found.state === "waiting") await approve();
      const firing = await eventually(
        () => lab.look(id),
        ({ endedAt }) => endedAt !== null,
      );
      const isIn = readFileSync(join(server.project, "count.txt"), "utf8") === "8\n";
      expect(firing.state).toBe(isIn ? "promoted" : "failed");
      await server.client.call("removeAutomation", { automation: name });
    });
  }

  test("at automation.removed has removed it, and its firing ends with what was done kept", async () => {
    await lab.add("removed", { run: ["echo kept > kept.txt; sleep 600"], checks: ["sh check.sh"], authority: "act-and-log" });
    const { id } = await server.client.call("runAutomation", { automation: "removed" });
    const sandbox = await lab.attempt(id);
    await eventually(
      () => server.sh(sandbox, "cat kept.txt"),
      ({ stdout }) => stdout === "kept\n",
    );
    await server.dieAt("automation.removed", () => server.client.call("removeAutomation", { automation: "removed" }));
    const firing = await lab.end(id);
    expect(firing).toMatchObject({ state: "failed", reason: expect.stringContaining("removed"), promotion: null });
    const experiment = await server.client.call("inspectExperiment", { experiment: firing.experiment ?? "" });
    expect(experiment.state).toBe("cancelled");
    expect(experiment.attempts[0]?.snapshot).not.toBeNull();
    await expect(lab.state("removed")).rejects.toMatchObject({ code: "not_found" });
  });

  test("DMN-1: what changed while no server was there fires once, and what did not does not", async () => {
    const before = (await lab.firings("count")).length;
    await server.kill();
    appendFileSync(trigger, "y\n");
    await server.up();
    const [firing] = await lab.ended("count", before + 1);
    expect(firing?.seen[0]?.text).toContain("in/trigger.txt");
    expect(firing?.seen[0]?.text).toContain("while no server was there");
    await server.down();
    await server.up();
    await eventually(
      () => lab.state("count"),
      ({ state }) => state === "active",
    );
    expect((await lab.firings("count")).length).toBe(before + 1);
  });
});
