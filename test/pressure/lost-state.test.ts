/** F-53 of the fault list: the state folder of a server is removed or replaced while it runs. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findHierarchies } from "../../src/base/host/cgroup-hierarchies.ts";
import { isRunning } from "../../src/base/host/processes.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { groupsOf } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a state folder that goes while its server runs", needs("root", "btrfs"), () => {
  let server: TestServer;
  /** What a server left that is gone for good: the sandbox is to go on, so only this test can clear it. */
  let orphan: { pid: number; groups: string[]; note: string };

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
  });

  afterAll(async () => {
    process.kill(orphan.pid, "SIGKILL");
    await eventually(
      () => isRunning(orphan.pid),
      (running) => !running,
    );
    for (const group of orphan.groups) for (const folder of [group, join(group, "../cells"), join(group, "..")]) rmdirSync(folder);
    const { cpuset } = findHierarchies(readFileSync("/proc/self/mountinfo", "utf8")) ?? {};
    const own = join(cpuset ?? "", basename(dirname(orphan.groups[0] ?? "")));
    if (cpuset !== undefined) for (const folder of [join(own, "cells"), own]) rmdirSync(folder);
    rmSync(orphan.note, { recursive: true });
    await server.client.call("prune", { all: true });
    await server.down();
    for (let mounts = mountsBelow(server.place); mounts.length > 0; mounts = mountsBelow(server.place)) {
      execFileSync("umount", [mounts.at(-1) ?? ""]);
    }
    server.client.close();
    rmSync(server.place, { recursive: true, force: true });
  });

  const mountsBelow = (place: string): string[] =>
    readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "")
      .filter((target) => target.startsWith(place));

  const uidsOf = (pid: number): string => readFileSync(`/proc/${pid}/uid_map`, "utf8").trim().split(/\s+/)[1] ?? "";

  /** Where it stands whose ids these are. */
  const noteOf = (uids: string): string => `/run/vivarium/taken-id-ranges/${(Number(uids) - LIMITS.uidRangeStart) / LIMITS.uidRangeSize}`;

  async function made(): Promise<{ id: string; pid: number; uids: string; groups: string[] }> {
    const { id } = await server.create();
    const pid = (await server.client.call("inspectSandbox", { sandbox: id })).processId ?? 0;
    return { id, pid, uids: uidsOf(pid), groups: groupsOf(new Set([id])) };
  }

  test("F-53: ends the server, and the one that starts anew there and the sandboxes of both are left alone", async () => {
    const old = await made();
    orphan = { ...old, note: noteOf(old.uids) };
    expect(lstatSync(orphan.note).isDirectory()).toBe(true);
    // The folders on which something is mounted stay.
    expect(spawnSync("rm", ["-rf", server.paths.home]).stderr.toString()).toContain("busy");
    expect(await server.died()).toBe(125);
    await server.up();
    const next = await made();
    expect(next.uids).not.toBe(old.uids);
    expect(next.groups.filter((group) => old.groups.some((other) => join(group, "..") === join(other, "..")))).toEqual([]);
    expect(execFileSync("losetup", ["-j", join(server.paths.home, "pool.img")]).toString()).not.toBe("");
    // The reconciler of the new one has run before it answered.
    await server.kill();
    await server.up();
    expect(isRunning(old.pid)).toBe(true);
    expect(old.groups.every((group) => existsSync(group))).toBe(true);
    expect((await server.sh(next.id, "cat hello.txt")).stdout).toBe("hello\n");
  });

  test("F-53: that was moved away ends its server without a touch of the one that is there now, and comes back with its sandboxes", async () => {
    const { home } = server.paths;
    const kept = await made();
    renameSync(home, `${home}-kept`);
    expect(await server.died()).toBe(125);
    await server.up();
    await server.down();
    renameSync(home, `${home}-other`);
    renameSync(`${home}-kept`, home);
    await server.up();
    expect(await server.client.call("inspectSandbox", { sandbox: kept.id })).toMatchObject({ state: "running", processId: kept.pid });
    expect((await server.sh(kept.id, "cat hello.txt")).stdout).toBe("hello\n");
  });
});
