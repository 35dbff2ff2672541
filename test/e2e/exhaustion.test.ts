/** RS of the threat list: a sandbox that takes all it can get hurts neither its sibling nor the host, and is told what it ran into. */
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, openSync, statfsSync, watch } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compile } from "../support/attacks.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import type { Limits } from "../../src/schema/sandbox.ts";

const MIB = 1024 ** 2;
const SMALL: Limits = { cpus: 1, memoryBytes: 256 * MIB, diskBytes: 64 * MIB, processes: 64 };

describe("a greedy sandbox", needs("root", "btrfs", "compiler"), () => {
  let server: TestServer;
  let sibling: string;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start();
    compile(server.project, "exhaust");
    sibling = (await server.create()).id;
  });
  beforeEach(async () => {
    box = (await server.create({ limits: SMALL })).id;
  });
  afterEach(async () => {
    await unharmed();
    await server.client.call("removeSandbox", { sandbox: box });
  });
  afterAll(async () => server?.remove());

  const exhaust = (...args: readonly string[]) =>
    server.client.call("runCommand", { sandbox: box, command: [join(server.project, "exhaust"), ...args], user: "root" });
  const counted = (stdout: string): [number, string] => [Number(stdout.split(" ")[0]), stdout.trim().split(" ")[1] ?? ""];

  /** Takes a resource in the background and holds it. Answers how much it got. */
  async function hold(resource: string, most = "10000000"): Promise<[number, string]> {
    const command = await server.sh(box, `tail -f /dev/null | ${join(server.project, "exhaust")} ${resource} ${most} hold`, {
      background: true,
      user: "root",
    });
    const seen = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command: command.id }),
      ({ stdout }) => stdout.includes("\n"),
    );
    return counted(seen.stdout);
  }

  async function unharmed(): Promise<void> {
    const begun = performance.now();
    expect((await server.sh(sibling, "echo fine > fine; cat fine")).stdout).toBe("fine\n");
    expect(performance.now() - begun).toBeLessThan(2_000);
    expect(spawnSync("true").status).toBe(0);
    closeSync(openSync("/dev/null", "r"));
    watch(server.place).close();
  }

  async function stops(): Promise<void> {
    const begun = performance.now();
    expect((await server.client.call("stopSandbox", { sandbox: box })).state).toBe("completed");
    expect(performance.now() - begun).toBeLessThan(8_000);
  }

  test("RS-01 and LIM-3: runs out of processes, is told so, and can be stopped", async () => {
    const result = await exhaust("processes");
    expect(counted(result.stdout)[0]).toBeLessThan(64);
    expect(result.end).toMatchObject({ cause: "too-many-processes" });
    await server.client.call("runCommand", { sandbox: box, command: ["bash", "-c", ":(){ :|:& };:"], background: true });
    await eventually(
      () => server.client.call("inspectSandbox", { sandbox: box }),
      ({ use }) => (use.processes ?? 0) >= 60,
    );
    await unharmed();
    const failed = await server.sh(box, "for i in 1 2 3 4 5 6 7 8 9; do /bin/true & done; wait; exit 1", { timeoutMs: 10_000 });
    expect(failed.end?.cause).toBe("too-many-processes");
    await stops();
  });

  test("RS-02 and LIM-3: runs out of memory, is told so, and works on", async () => {
    const result = await exhaust("memory", "1000");
    expect(result.end).toMatchObject({ cause: "out-of-memory", signal: "SIGKILL" });
    expect((await server.sh(box, "echo works")).stdout).toBe("works\n");
    expect((await server.sh(box, "exit 3")).end).toMatchObject({ cause: "exit", exitCode: 3 });
  });

  test.each(["memfd", "shm"])("RS-03: pays for %s with its own memory", async (kind) => {
    const result =
      kind === "memfd"
        ? await exhaust("memfd", "1000")
        : await server.sh(box, "dd if=/dev/zero of=/dev/shm/hog bs=1M count=1000", { user: "root" });
    expect(result.end).toMatchObject({ cause: "out-of-memory" });
    const next = await server.sh(box, "perl -e '$x = q(x) x 50_000_000'", { timeoutMs: 10_000 });
    // What lies in /dev/shm outlives the command that put it there; a memory file does not.
    expect(next.end?.cause).toBe(kind === "shm" ? "out-of-memory" : "exit");
    await stops();
  });

  test("RS-04 and LIM-3: fills its disk, whatever the way, and the host keeps its own", async () => {
    const free = statfsSync(server.place).bavail;
    const plain = await server.sh(box, "dd if=/dev/urandom of=fill bs=1M count=200 conv=fsync", { user: "root" });
    expect(plain.stderr).toMatch(/Disk quota exceeded|No space left/);
    expect(plain.end).toMatchObject({ cause: "disk-full" });
    expect((await server.sh(box, "rm fill; sync; echo room > small; cat small")).stdout).toBe("room\n");
    for (const way of ["deleted-file", "allocation"]) {
      const result = await eventually(
        () => exhaust(way, "200"),
        ({ end }) => end?.exitCode !== undefined,
      );
      expect(counted(result.stdout)[0], way).toBeLessThan(80);
      expect(["EDQUOT", "ENOSPC"], way).toContain(counted(result.stdout)[1]);
      await server.sh(box, "rm -f allocated; sync");
    }
    const blocks = statfsSync(server.place);
    expect((free - blocks.bavail) * blocks.bsize).toBeLessThan(1024 * MIB);
  });

  test("RS-04: snapshots and forks do not make the quota larger", async () => {
    await server.sh(box, "dd if=/dev/urandom of=one bs=1M count=40 conv=fsync");
    await server.client.call("createSnapshot", { sandbox: box });
    const second = await server.sh(box, "rm one; dd if=/dev/urandom of=two bs=1M count=40 conv=fsync");
    expect(second.end).toMatchObject({ cause: "disk-full" });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
    const fork = sandboxes[0]?.id ?? "";
    const inFork = await server.sh(fork, "dd if=/dev/urandom of=three bs=1M count=100 conv=fsync");
    expect(inFork.end).toMatchObject({ cause: "disk-full" });
    await server.client.call("removeSandbox", { sandbox: fork });
  });

  test("RS-04: makes files until its quota is full, not until the disk is", async () => {
    const tiny = await server.create({ limits: { ...SMALL, diskBytes: 12 * MIB } });
    const result = await server.client.call("runCommand", {
      sandbox: tiny.id,
      command: [join(server.project, "exhaust"), "inodes", "2000000"],
    });
    expect(["EDQUOT", "ENOSPC"]).toContain(counted(result.stdout)[1]);
    expect(result.end).toMatchObject({ cause: "disk-full" });
    await server.client.call("removeSandbox", { sandbox: tiny.id });
  });

  test("RS-07: takes every inotify instance it may have, and the others still get theirs", async () => {
    const [count, error] = await hold("watchers");
    expect([count > 10, error]).toEqual([true, "EMFILE"]);
    const other = await server.client.call("runCommand", {
      sandbox: sibling,
      command: [join(server.project, "exhaust"), "watchers", "20"],
    });
    expect(other.stdout).toBe("20 enough\n");
    await unharmed();
  });

  test("RS-07: takes every terminal it may have, and the others still get theirs", async () => {
    const [count, error] = await hold("terminals");
    expect([count > 10, error]).toEqual([true, "ENOSPC"]);
    expect(count).toBeLessThan(1_000);
    const stream = await server.client.exec(sibling, { command: ["tty"], terminal: { rows: 24, cols: 80 } });
    expect((await stream.end).exitCode).toBe(0);
    closeSync(openSync("/dev/ptmx", "r+"));
  });

  test.each(["watches", "pipes", "queues", "timers", "descriptors"])(
    "RS-07: takes all the %s it may have, and the others still get theirs",
    async (resource) => {
      const [count] = await hold(resource, "400000");
      expect(count).toBeGreaterThan(0);
      const others = await server.client.call("runCommand", {
        sandbox: sibling,
        command: [join(server.project, "exhaust"), resource, "8"],
        user: "root",
      });
      expect(others.stdout).toBe("8 enough\n");
      const onHost = execFileSync(
        "unshare",
        ["-m", "-i", "sh", "-c", 'mount -t tmpfs none /mnt && cd /mnt && exec "$@"', "sh", join(server.project, "exhaust"), resource, "8"],
        { encoding: "utf8" },
      );
      expect(onHost).toBe("8 enough\n");
    },
  );

  test("RS-07: has no keys and no asynchronous requests, which the machine counts for all together", async () => {
    expect(counted((await exhaust("keys", "1")).stdout)).toEqual([0, "EPERM"]);
    expect(counted((await exhaust("aio", "1")).stdout)).toEqual([0, "ENOSYS"]);
    expect(execFileSync(join(server.project, "exhaust"), ["aio", "1"], { encoding: "utf8" })).toBe("1 enough\n");
  });

  test("RS-08 and LIM-1: burns no more than its share of the processors", async () => {
    const half = await server.create({ limits: { ...SMALL, cpus: 0.5 } });
    const burn = await server.sh(
      half.id,
      "renice -n -20 $$; (timeout 2 sh -c 'while :; do :; done' & timeout 2 sh -c 'while :; do :; done' & wait); true",
    );
    const share = (burn.end?.cpuMs ?? 0) / (burn.end?.wallMs ?? 1);
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.65);
    await server.client.call("removeSandbox", { sandbox: half.id });
  });

  test("LIM-1: says which limits hold and holds them in the kernel", async () => {
    const detail = await server.client.call("inspectSandbox", { sandbox: box });
    expect(detail).toMatchObject({ limits: SMALL, limitsHeld: "hard" });
  });
});
