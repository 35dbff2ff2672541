/** DMN-1, DMN-2: automations of vivarium.json are what the file says when their trigger fires, and what a person trusted. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTING, AutomationLab, type ShownFiring } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FIX = {
  when: { on: "files", paths: ["in.txt"] },
  batch: 0,
  run: ["echo 42 > answer.txt"],
  checks: ["test -s answer.txt"],
  authority: "act-and-log",
};

describe("an automation of vivarium.json", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  const save = (name: string, text: string): void => writeFileSync(join(server.project, name), text);
  const config = (content: object): void => save("vivarium.json", JSON.stringify(content));

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: { "answer.txt": "41\n", "in.txt": "0\n" } });
    lab = new AutomationLab(server);
  });
  afterAll(async () => server?.remove());

  /** The newest firing once there are so many, and it is as asked; nothing else reads the config. */
  async function newest(count: number, isOne: (firing: ShownFiring) => boolean): Promise<ShownFiring> {
    const all = await eventually(
      () => lab.firings(),
      ([first, ...rest]) => rest.length + 1 === count && first !== undefined && isOne(first),
      20_000,
    );
    if (all[0] === undefined) throw new Error("there is no firing");
    return all[0];
  }

  async function trusted(content: object): Promise<void> {
    config(content);
    await server.client.call("trust", { project: server.project });
    await server.client.call("listAutomations", {});
  }

  test("that was deleted from the file does not begin when its trigger fires", async () => {
    await trusted({ automations: { fix: FIX } });
    config({});
    save("in.txt", "1");
    const firing = await newest(1, ({ endedAt }) => endedAt !== null);
    expect(firing).toMatchObject({ state: "failed", reason: expect.stringContaining("removed"), experiment: null });
    expect(lab.read("answer.txt")).toBe("41\n");
    expect((await server.client.call("listAutomations", {})).automations).toEqual([]);
  });

  test("whose file is not the trusted one waits when its trigger fires, and begins once a person trusts it", async () => {
    await trusted({ automations: { fix: FIX } });
    config({ automations: { fix: { ...FIX, run: ["echo 43 > answer.txt"] } } });
    save("in.txt", "2");
    const waiting = await newest(2, ({ reason }) => reason !== null);
    expect(waiting).toMatchObject({ state: "seen", reason: expect.stringContaining("viv trust") });
    expect(lab.read("answer.txt")).toBe("41\n");
    await server.client.call("trust", { project: server.project });
    expect(await lab.end(waiting.id)).toMatchObject({ state: "promoted", count: 1 });
    expect(lab.read("answer.txt")).toBe("43\n");
  });

  test("that is deleted while it works promotes nothing", async () => {
    const run = ["until test -e /tmp/go; do sleep 0.05; done; echo 44 > answer.txt"];
    await trusted({ automations: { fix: { ...FIX, run } } });
    save("in.txt", "3");
    const { id } = await newest(3, () => true);
    const sandbox = await lab.attempt(id);
    config({});
    await server.sh(sandbox, "touch /tmp/go");
    expect(await lab.end(id)).toMatchObject({ state: "failed", reason: expect.stringContaining("removed"), promotion: null });
    expect(lab.read("answer.txt")).toBe("43\n");
  });

  test("that waits for a check prepares its clone as the project does", async () => {
    const when = { on: "check", command: "test -e ready", every: "1h" };
    await trusted({ setup: "touch ready", automations: { check: { when, run: ["true"], authority: "alert-only" } } });
    expect(await server.client.call("testAutomation", { automation: "check" })).toMatchObject({
      seen: "`test -e ready` passes.",
      wouldFire: false,
    });
  });
});
