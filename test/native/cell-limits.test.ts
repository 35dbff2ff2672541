import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { constants } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { VivError } from "../../src/base/schema/errors.ts";
import { CellClient } from "../../src/machine/drivers/native/cell-client.ts";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

describe("process 1 at its limits", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  let idle: Socket[];
  beforeEach(() => {
    cell = new CellProcess();
    idle = [];
  });
  afterEach(async () => {
    for (const socket of idle) socket.destroy();
    if (cell.running) await vi.waitFor(() => cell.client.ping(), 5000);
    await cell.remove();
    expect(cell.complaints).toBe("");
  });

  const open = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number++) {
      const socket = connect(cell.socket);
      socket.on("error", () => socket.destroy());
      idle.push(socket);
      await once(socket, "connect");
    }
  };

  test("turns connections past the 256th away and takes new ones later", async () => {
    await cell.start();
    await open(256);
    await expect(cell.client.ping()).rejects.toMatchObject({ code: "no_capacity" });
    idle.pop()?.destroy();
    await vi.waitFor(async () => expect((await cell.client.ping()).version).toBe(1));
  }, 60_000);

  test("without a free descriptor refuses and goes on", async () => {
    await cell.start("descriptors:48");
    await open(60);
    await expect(cell.client.ping()).rejects.toMatchObject({ code: expect.stringMatching(/^(no_capacity|not_running)$/) });
    idle.splice(0, 50).forEach((socket) => socket.destroy());
    await vi.waitFor(async () => expect((await cell.client.ping()).version).toBe(1));
    const commands = await Promise.allSettled(Array.from({ length: 30 }, () => cell.collect(["sh", "-c", "sleep 0.2; echo ok"])));
    const outcomes = commands.map((result) => (result.status === "fulfilled" ? result.value.stdout : (result.reason as VivError).code));
    expect(outcomes.filter((outcome) => !["ok\n", "no_capacity", "not_running"].includes(outcome))).toEqual([]);
    expect(commands.some((result) => result.status === "rejected")).toBe(true);
    expect((await cell.collect(["echo", "after"])).stdout).toBe("after\n");
  }, 60_000);

  test("reaps thousands of orphans while it goes on answering", async () => {
    await cell.start();
    const storm = await cell.client.exec(cell.request(["sh", "-c", "i=0; while [ $i -lt 3000 ]; do (true & true &) ; i=$((i+1)); done"]));
    for (let round = 0; round < 20; round++) await cell.client.ping();
    expect((await storm.exit).code).toBe(0);
    const zombies = async () =>
      Number((await cell.collect(["sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"])).stdout);
    await vi.waitFor(async () => expect(await zombies()).toBe(0), 5000);
  }, 60_000);

  test("a request that gets no answer says so in time, and its command does not run later", async () => {
    await cell.start();
    const hasty = new CellClient(cell.socket, 200);
    const made = join(cell.folder, "made");
    process.kill(cell.firstPid, "SIGSTOP");
    const silent = {
      code: "sandbox_silent",
      message: expect.stringContaining("did not answer"),
      remedy: expect.stringContaining("viv fork"),
    };
    try {
      await expect(hasty.exec(cell.request(["sh", "-c", `sleep 5; touch ${made}`]))).rejects.toMatchObject(silent);
      const asked = [hasty.attach("c1", false), hasty.list(), hasty.kill("c1", 15), hasty.ping(), hasty.dial(80)];
      for (const answer of await Promise.allSettled(asked)) expect(answer).toMatchObject({ status: "rejected", reason: silent });
    } finally {
      process.kill(cell.firstPid, "SIGCONT");
    }
    await vi.waitFor(async () => expect(await cell.client.list()).toEqual([]));
    expect(existsSync(made)).toBe(false);
    expect((await cell.collect(["touch", made])).exit.code).toBe(0);
    expect(existsSync(made)).toBe(true);
  });

  test("puts commands and file operations into their cgroup, and answers while that is frozen", needs("cgroup-v2"), async () => {
    const mount = / (\S+) cgroup2 /.exec(readFileSync("/proc/self/mounts", "utf8"))?.[1] ?? "";
    const group = join(mount, `viv-cell-test-${process.pid}`);
    mkdirSync(group);
    try {
      await cell.start(`cgroup:${group}/cgroup.procs`);
      expect((await cell.collect(["cat", "/proc/self/cgroup"])).stdout).toMatch(new RegExp(`^0::.*/viv-cell-test-${process.pid}$`, "m"));
      expect(readFileSync(`/proc/${cell.firstPid}/cgroup`, "utf8")).not.toContain("viv-cell-test");
      writeFileSync(join(group, "cgroup.freeze"), "1");
      const waiting = cell.collect(["echo", "thawed"]);
      const doomed = ["SIGTERM", "SIGKILL"].map((signal) => ({ signal, request: cell.request(["sleep", "60"]) }));
      const ends = doomed.map(async ({ request }) => (await cell.client.exec(request)).exit);
      const listing = cell.client.files.list("/", "root", 1, 10);
      await vi.waitFor(() => expect(readFileSync(join(group, "cgroup.procs"), "utf8").trim().split("\n").length).toBeGreaterThanOrEqual(2));
      await vi.waitFor(async () => expect(await cell.client.ping()).toMatchObject({ commands: 3 }));
      for (const { signal, request } of doomed)
        expect(await cell.client.kill(request.id, constants.signals[signal as "SIGTERM"])).toBe(true);
      writeFileSync(join(group, "cgroup.freeze"), "0");
      expect((await waiting).stdout).toBe("thawed\n");
      expect((await Promise.all(ends)).map(({ signal }) => signal)).toEqual([constants.signals.SIGTERM, constants.signals.SIGKILL]);
      expect((await listing).length).toBeGreaterThan(0);
      // More than one child of process 1 makes before it is replaced.
      for (let round = 0; round < 7; round += 1) {
        const many = await Promise.all(Array.from({ length: 40 }, (_, code) => cell.collect(["sh", "-c", `echo $$; exit ${code}`])));
        expect(many.map(({ exit }) => exit.code)).toEqual(many.map((_, code) => code));
      }
      await expect(cell.collect(["no-such-program"])).rejects.toMatchObject({ code: "command_not_found" });
    } finally {
      await cell.client.stop(0);
      await cell.ended;
      await vi.waitFor(() => rmdirSync(group), 5000);
    }
  });
});
