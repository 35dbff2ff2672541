/** Forks in which attempts are judged are launched while the attempts run, as far as that goes without files. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mountTable } from "../../src/base/host/mounts.ts";
import { namesIn } from "../../src/base/host/names-in.ts";
import { attempt, Lab } from "../support/experiments.ts";
import { traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FIX = "echo right > value";
const CHECKS = { checks: ["grep -q right value"] };

describe("a fork that is launched ahead", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;
  beforeEach(async () => {
    server = await TestServer.start({ files: { value: "wrong\n" } });
    lab = new Lab(server);
  });
  afterEach(async () => server?.remove());

  /** Ids of launches that have no row. */
  async function ahead(): Promise<string[]> {
    const folder = join(server.paths.home, "run");
    const { sandboxes } = await server.client.call("listSandboxes", {});
    const known = new Set(sandboxes.map(({ id }) => id));
    return namesIn(folder).filter((name) => !known.has(name) && existsSync(join(folder, name, "egress.sock")));
  }

  const aheadAre = (count: number): Promise<string[]> => eventually(ahead, (found) => found.length === count, 20_000);
  const happened = async (sandbox: string): Promise<string[]> =>
    (await server.client.call("listEvents", { sandbox, limit: 100 })).events.map(({ type }) => type);

  /** Other tests mount, too. */
  async function waitingWhileMountsStay(): Promise<string[]> {
    for (;;) {
      const before = mountTable();
      const { id } = await lab.start([`sleep 1; ${FIX}`, "sleep 1"], CHECKS);
      const waiting = await aheadAre(2);
      const ended = await lab.end(id);
      expect(ended).toMatchObject({ state: "done", winner: 1 });
      expect(attempt(ended, "b")).toMatchObject({ checked: { passed: false } });
      if (mountTable() === before) return waiting;
    }
  }

  test("is the one in which its attempt is judged, and goes with it", async () => {
    const waiting = await waitingWhileMountsStay();
    for (const sandbox of waiting)
      await eventually(
        () => happened(sandbox),
        (events) => events.join(" ") === "sandbox.creating sandbox.running command.started command.ended sandbox.removed",
      );
    expect(await aheadAre(0)).toEqual([]);
  });

  test("is another one where the mounts of the machine have changed meanwhile", async () => {
    const place = join(server.place, "mounted");
    mkdirSync(place);
    const { id } = await lab.start([`sleep 1; ${FIX}`], CHECKS);
    const [waiting = ""] = await aheadAre(1);
    execFileSync("mount", ["-t", "tmpfs", "none", place]);
    try {
      expect(await lab.end(id)).toMatchObject({ state: "done", winner: 1 });
    } finally {
      execFileSync("umount", [place]);
    }
    expect(await happened(waiting)).toEqual([]);
    expect(traces(server).volumes).not.toContain(waiting);
    await aheadAre(0);
  });

  test("is not there where nothing judges, and goes when the attempt is cancelled", async () => {
    const unjudged = await lab.start(["sleep 0.5"]);
    const judged = await lab.start(["sleep 60"], CHECKS);
    await lab.end(unjudged.id);
    await aheadAre(1);
    const cancelled = await server.client.call("cancelExperiment", { experiment: judged.id, now: true });
    expect(cancelled).toMatchObject({ state: "cancelled" });
    await aheadAre(0);
  });

  test("is gone after a kill -9 of the server, and the attempt is judged all the same", async () => {
    const { id } = await lab.start([`sleep 1; ${FIX}`], CHECKS);
    const [waiting = ""] = await aheadAre(1);
    await server.kill();
    await server.up();
    expect(await lab.end(id)).toMatchObject({ state: "done", winner: 1 });
    await eventually(
      () => traces(server),
      ({ runs, volumes }) => !runs.includes(waiting) && !volumes.includes(waiting),
    );
  });
});
