/** The server is killed around a decision: none is lost, none is made up, and an approval counts once. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ActionAnswer } from "../../src/base/schema/action.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { act, line } from "../support/inside.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

describe("a server killed while an action is decided", needs("root", "curl"), () => {
  let server: TestServer;
  /** The sandbox that acts. */
  let box: string;
  let number = 0;
  /** Each test asks about an action of its own. */
  let push: string;
  const decide = (command: string, wait = 0): Promise<ActionAnswer> =>
    server.client.call("decideAction", { sandbox: box, action: line(command), wait });
  const answer = (approval: string | undefined, how: "once" | "always" | "deny" = "once") =>
    server.client.call("answerApproval", { approval: approval ?? "", answer: how, approver: server.approver() });
  const records = async (target: string) =>
    (await server.client.call("listDecisions", { sandbox: box, limit: 1000 })).records
      .filter((record) => record.target === target)
      .map(({ actor, action, label }) => `${actor.kind} ${action} ${label}`);

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
    box = (await server.create({ level: 2 })).id;
  });
  beforeEach(() => {
    number += 1;
    push = `git push origin branch-${number}`;
  });
  afterAll(async () => {
    expect(await server.client.call("verifyAudit", {})).toMatchObject({ whole: true });
    await server.remove();
  });

  test("AU-10: at action.recorded has recorded the verdict once, and the agent was not told that it may act", async () => {
    const denied = `sudo touch ${number}`;
    await server.dieAt("action.recorded", () => decide(denied));
    expect(await records(denied)).toEqual(["agent bash DENIED"]);
    expect(await decide(denied)).toMatchObject({ verdict: "deny" });
  });

  test("POL-5: at approval.asked keeps the question, which is the same when it is asked again", async () => {
    await server.dieAt("approval.asked", () => decide(push));
    const waiting = (await server.client.call("listApprovals", {})).approvals.filter(({ target }) => target === push);
    expect(waiting).toHaveLength(1);
    expect(await decide(push)).toMatchObject({ verdict: "ask", approval: { id: waiting[0]?.id } });
    expect(await records(push)).toEqual(["agent bash RECORDED"]);
  });

  for (const how of ["once", "always", "deny"] as const) {
    test(`POL-5: at approval.answered keeps the answer ${how}, with one record`, async () => {
      const { approval } = await decide(push);
      await server.dieAt("approval.answered", () => answer(approval?.id, how));
      const label = how === "deny" ? "DENIED" : "APPROVED";
      expect(await records(push)).toEqual(["agent bash RECORDED", `person approval ${label}`]);
      await expect(answer(approval?.id, how)).rejects.toMatchObject({ code: "illegal_transition" });
      const verdicts = [(await decide(push)).verdict, (await decide(push)).verdict];
      expect(verdicts).toEqual({ once: ["allow", "ask"], always: ["allow", "allow"], deny: ["deny", "deny"] }[how]);
    });
  }

  test("POL-5: at approval.used has spent the approval: the person is asked again, since the agent got no answer", async () => {
    const { approval } = await decide(push);
    await answer(approval?.id);
    await server.dieAt("approval.used", () => decide(push));
    expect((await server.client.call("inspectApproval", { approval: approval?.id ?? "" })).state).toBe("used");
    expect(await records(push)).toEqual(["agent bash RECORDED", "person approval APPROVED", "agent bash APPROVED"]);
    expect(await decide(push)).toMatchObject({ verdict: "ask" });
  });

  test("POL-3: at policy.set has changed the level, with one record", async () => {
    const { id } = await server.create({ level: 2 });
    await server.dieAt("policy.set", () => server.client.call("setPolicy", { sandbox: id, level: 1, approver: server.approver() }));
    expect((await server.client.call("inspectPolicy", { sandbox: id })).autonomy.level).toBe(1);
    const { records: all } = await server.client.call("listDecisions", { sandbox: id });
    expect(all.filter(({ action }) => action === "policy.set")).toHaveLength(1);
  });

  test("POL-5: at rule.forgotten has taken the rule back, with one record", async () => {
    const { approval } = await decide(push);
    await answer(approval?.id, "always");
    await server.dieAt("rule.forgotten", () => server.client.call("forgetRule", { rule: approval?.id ?? "" }));
    expect(await records(`bash: ${push}`)).toEqual(["person policy.forget RECORDED"]);
    expect(await decide(push)).toMatchObject({ verdict: "ask" });
  });

  test("POL-5 AU-10: at any moment of a storm loses no answer, and lets nothing through twice", async () => {
    for (let round = 0; round < rounds(2, 30); round += 1) {
      box = (await server.create({ level: 2 })).id;
      const commands = Array.from({ length: 6 }, (_, index) => `${push} ${round} ${index}`);
      const heard = new Map<string, number>();
      const storm = Promise.all(commands.map((command) => tryOnce(command, heard)));
      await delay(Math.random() * 150);
      await server.kill();
      await storm;
      await server.up();
      const asked = (await server.client.call("listApprovals", { all: true })).approvals;
      for (const command of commands) {
        const found = await records(command);
        const count = (what: string): number => found.filter((each) => each === what).length;
        const answered = asked.filter(({ target, answeredAt }) => target === command && answeredAt !== null);
        const used = answered.filter(({ state }) => state === "used");
        expect(count("agent bash RECORDED")).toBe(asked.filter(({ target }) => target === command).length);
        expect(count("person approval APPROVED")).toBe(answered.length);
        expect(count("agent bash APPROVED")).toBe(used.length);
        expect(heard.get(command) ?? 0).toBeLessThanOrEqual(used.length);
        expect(used.length).toBeLessThanOrEqual(1);
      }
    }
  }, 120_000);

  /** Asks, answers, and tries three times at once; what the server's end cuts off is no answer. */
  async function tryOnce(command: string, heard: Map<string, number>): Promise<void> {
    try {
      const { approval } = await decide(command);
      await answer(approval?.id);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "server_unreachable") throw error;
    }
    const tries = await Promise.allSettled([decide(command), decide(command), decide(command)]);
    const allowed = tries.filter((each) => each.status === "fulfilled" && each.value.verdict === "allow");
    heard.set(command, allowed.length);
  }

  test("POL-5: while it is away nothing inside is allowed, and an agent that waited gets its answer by trying again", async () => {
    const { approval } = await decide(push);
    const waiting = `curl -sS -m 20 -d '{"action":{"kind":"command","command":"${push}"},"wait":15}' http://localhost:4097/sandbox/self/actions > answer 2>&1; echo $? > code`;
    const { id } = await server.client.call("runCommand", { sandbox: box, command: ["/bin/sh", "-c", waiting], background: true });
    await server.kill();
    await server.up();
    await server.client.call("inspectCommand", { sandbox: box, command: id });
    expect((await server.sh(box, "while [ ! -s code ]; do sleep 0.05; done; cat answer")).stdout).not.toContain('"allow"');
    await answer(approval?.id);
    expect(await act(server, box, [push, push])).toMatchObject([{ verdict: "allow" }, { verdict: "ask" }]);
  });
});
