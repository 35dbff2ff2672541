/** People are told of a run by the name of its task, once, with a link to it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { RequestCatcher } from "../support/push-service.ts";
import { needs } from "../support/skip.ts";

describe("a run of an agent", needs("root"), () => {
  let lab: RunLab;
  let catcher: RequestCatcher;

  beforeAll(async () => {
    catcher = await RequestCatcher.start();
    const channels = { hook: { type: "webhook", url: catcher.origin } };
    lab = await RunLab.open({ spares: false, notifications: { channels } });
  });
  afterAll(async () => {
    await lab?.server.remove();
    await catcher?.close();
  });

  const told = (): Record<string, unknown>[] => catcher.received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);

  test("WEB-2: is told of once when it is done, and one that a person cancelled is not told of", async () => {
    const cancelled = await lab.begin(["text I wait", "hold never"]);
    await lab.until(cancelled.id, ({ state }) => state === "running");
    await lab.server.client.call("cancelExperiment", { experiment: cancelled.experiment ?? "" });
    await lab.ended(cancelled.id);
    const done = await lab.begin(["text All is well", "write made.txt hello"]);
    await lab.ended(done.id);
    await catcher.count(1);
    expect(told()).toMatchObject([{ kind: "done", title: "Done: text All is well", link: `/run/${done.id}`, run: done.id }]);
  });

  test("is told of as failed, where its checks fail", async () => {
    const failed = await lab.begin(["text I did nothing"], { checks: ["test -f never"] });
    await lab.ended(failed.id);
    await catcher.count(2);
    expect(told()[1]).toMatchObject({ kind: "failed", title: "Failed: text I did nothing", link: `/run/${failed.id}` });
  });
});
