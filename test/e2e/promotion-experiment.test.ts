/** EXP-3 and EXP-4: the winner of an experiment on its way into a reality that may have moved. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { InputOf, OutputOf } from "../../src/base/schema/contracts.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = { "code.txt": "1\n2\n3\n4\n5\n6\n7\n8\nbug\n", "rule.txt": "no bug\n" };
/** Passes when the code keeps the rule, and has not got two heads. */
const CHECK = '! grep -qx "$(cut -d" " -f2 rule.txt)" code.txt && [ "$(grep -c head code.txt)" -lt 2 ]';

describe("the winner of an experiment", needs("root", "btrfs"), () => {
  let server: TestServer;
  const path = (name: string): string => join(server.project, name);

  beforeAll(async () => {
    server = await TestServer.start({ files: FILES });
  });
  afterAll(async () => server?.remove());
  beforeEach(() => {
    for (const [name, content] of Object.entries(FILES)) writeFileSync(path(name), content);
    rmSync(path("notes.txt"), { force: true });
  });

  async function experiment(input: Partial<InputOf<"startExperiment">> = {}): Promise<OutputOf<"inspectExperiment">> {
    const { id } = await server.client.call("startExperiment", {
      project: server.project,
      attempts: [{ command: "sed -i 's/bug/head/' code.txt" }, { command: "sed -i 's/bug/long way to a head/; 1i more' code.txt" }],
      checks: [CHECK],
      ...input,
    });
    return eventually(
      () => server.client.call("inspectExperiment", { experiment: id }),
      ({ state }) => !["queued", "running"].includes(state),
      60_000,
    );
  }

  const verified = ({ stages }: OutputOf<"promote">): OutputOf<"promote">["stages"][number] | undefined =>
    stages.find(({ name }) => name === "verified");

  test("EXP-3: is promoted by the experiment's name, and the others stay", async () => {
    const { id, winner, attempts } = await experiment();
    expect(winner).toBe(1);
    const promotion = await server.client.call("promote", { experiment: id });
    expect(promotion).toMatchObject({ state: "applied", experiment: id });
    expect(verified(promotion)).toMatchObject({ state: "passed", checks: [] });
    expect(readFileSync(path("code.txt"), "utf8")).toBe(FILES["code.txt"].replace("bug", "head"));
    for (const { sandbox } of attempts)
      expect((await server.client.call("inspectSandbox", { sandbox: sandbox ?? "" })).state).toBe("running");
  });

  test("EXP-4: is merged with what moved, and checked again on that before it is applied", async () => {
    const { id } = await experiment();
    writeFileSync(path("notes.txt"), "mine\n");
    writeFileSync(path("code.txt"), FILES["code.txt"].replace("1\n", "one\n"));
    const promotion = await server.client.call("promote", { experiment: id });
    expect(promotion).toMatchObject({ state: "applied", plan: { moved: true } });
    expect(verified(promotion)?.checks).toMatchObject([{ command: CHECK, passed: true }]);
    expect(readFileSync(path("code.txt"), "utf8")).toBe("one\n2\n3\n4\n5\n6\n7\n8\nhead\n");
  });

  test("EXP-4: is not applied where its checks fail on today's reality", async () => {
    const { id } = await experiment();
    // It merges cleanly, and is wrong all the same.
    const moved = `head\n${FILES["code.txt"]}`;
    writeFileSync(path("code.txt"), moved);
    const promotion = await server.client.call("promote", { experiment: id });
    expect(promotion).toMatchObject({ state: "failed", plan: { moved: true, conflicts: [] } });
    expect(verified(promotion)).toMatchObject({ state: "failed" });
    expect(readFileSync(path("code.txt"), "utf8")).toBe(moved);
  });

  test("EXP-3: is promoted without its edits of protected files, since it was judged without them", async () => {
    const { id } = await experiment({
      attempts: [{ command: "sed -i 's/bug/head/' code.txt; echo 'no matter' > rule.txt" }],
      protect: ["rule.txt"],
    });
    const promotion = await server.client.call("promote", { experiment: id });
    expect(promotion).toMatchObject({ state: "applied", plan: { files: 1, leftOut: [{ path: "rule.txt", why: "protected" }] } });
    expect(readFileSync(path("rule.txt"), "utf8")).toBe(FILES["rule.txt"]);
  });

  test("EXP-3: is promoted at once when that was asked for, and nothing is without a winner", async () => {
    const { promotion } = await experiment({ promote: true });
    expect(await server.client.call("inspectPromotion", { promotion: promotion ?? "" })).toMatchObject({ state: "applied" });
    expect(readFileSync(path("code.txt"), "utf8")).toContain("head");
    await server.client.call("undoPromotion", { project: server.project });
    const none = await experiment({ promote: true, attempts: [{ command: "echo x > notes.txt" }] });
    expect(none).toMatchObject({ winner: null, promotion: null });
    expect(existsSync(path("notes.txt"))).toBe(false);
    await expect(server.client.call("promote", { experiment: none.id })).rejects.toMatchObject({ code: "not_found" });
  });

  test("EXP-3: has a promotion that waits where a person has to look, and another one may still be chosen", async () => {
    const change = "sed -i 's/bug/head/' code.txt; echo 'export A=1' > .envrc";
    const first = await experiment({ promote: true, attempts: [{ command: change }, { command: `${change}; echo more >> code.txt` }] });
    expect(first).toMatchObject({ winner: 1, reason: expect.stringContaining("Its promotion waits: The change holds something") });
    const promotion = first.promotion ?? "";
    expect(await server.client.call("inspectPromotion", { promotion })).toMatchObject({ state: "waiting", experiment: first.id });
    const second = await server.client.call("pickWinner", { experiment: first.id, attempt: 2 });
    expect(second).toMatchObject({ winner: 2, promotion: expect.stringMatching(/^prm/) });
    expect(second.promotion).not.toBe(promotion);
    // The question about the first is taken back: an answer to it would bring both in.
    expect(await server.client.call("inspectPromotion", { promotion })).toMatchObject({ state: "discarded" });
    await server.client.call("continuePromotion", { promotion: second.promotion ?? "", approve: true, approver: server.approver() });
    expect(readFileSync(path("code.txt"), "utf8")).toContain("head\nmore\n");
    await expect(server.client.call("pickWinner", { experiment: first.id, attempt: 1 })).rejects.toMatchObject({
      code: "illegal_transition",
    });
  });

  test("EXP-3: keeps its sandbox while its promotion waits, also where no sandbox is to be kept", async () => {
    rmSync(path(".envrc"), { force: true });
    const change = "sed -i 's/bug/head/' code.txt; echo 'export A=1' > .envrc";
    const { promotion, winner, attempts } = await experiment({ promote: true, keep: "none", attempts: [{ command: change }] });
    const sandbox = attempts.find(({ index }) => index === winner)?.sandbox ?? "none";
    expect((await server.client.call("inspectSandbox", { sandbox })).state).toBe("running");
    const approved = { promotion: promotion ?? "", approve: true, approver: server.approver() };
    expect(await server.client.call("continuePromotion", approved)).toMatchObject({ state: "applied" });
  });
});
