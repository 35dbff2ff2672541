/** RS of the threat list: a sandbox that takes all it can get hurts neither its sibling nor the host, and is told what it ran into. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, statfsSync, watch } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compile } from "../support/attacks.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import type { Limits } from "../../src/base/schema/sandbox.ts";

const MIB = 1024 ** 2;
const SMALL: Limits = { cpus: 1, memoryBytes: 256 * MIB, diskBytes: 64 * MIB, processes: 64 };
/** Of no account, so that what counts per user counts for the test alone. */
const NOBODYS_UID = 0x6ffff001;
/** More than a small sandbox has, and little for a machine. */
const TOO_MUCH_MIB = "400";
/** Of each context that the program takes. */
const AIO_REQUESTS = 64;

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
  /** The same on the machine, in namespaces of its own, with a file system of its own to work in. */
  const exhaustHost = (...args: readonly string[]): string =>
    execFileSync(
      "unshare",
      ["-m", "-i", "sh", "-c", 'mount -t tmpfs none /mnt && cd /mnt && exec "$@"', "sh", join(server.project, "exhaust"), ...args],
      { encoding: "utf8" },
    );
  const counted = (stdout: string): [number, string] => [Number(stdout.split(" ")[0]), stdout.trim().split(" ")[1] ?? ""];

  const TOLD = `({ parallel: os.availableParallelism(), constrained: process.constrainedMemory(), total: os.totalmem(), smallHeap: v8.getHeapStatistics().heap_size_limit < ${512 * MIB} })`;

  /** What programs believe that they have. */
  async function sizes(): Promise<unknown> {
    const { stdout } = await server.sh(box, `nproc; getconf _NPROCESSORS_ONLN; ${process.execPath} -p 'JSON.stringify${TOLD}'`);
    const [nproc, online, node] = stdout.split("\n");
    return { nproc, online, ...(JSON.parse(node ?? "null") as object) };
  }

  const sizesFor = (cpus: number, memory: number): unknown => ({
    nproc: String(cpus),
    online: String(cpus),
    parallel: cpus,
    constrained: memory,
    total: memory,
    smallHeap: true,
  });

  /** Takes a resource in the background and holds it. Answers how much it got. */
  async function hold(resource: string, most = "10000000"): Promise<[number, string]> {
    const command = await server.sh(box, `tail -f /dev/null | ${join(server.project, "exhaust")} ${resource} ${most} hold`, {
      background: true,
      user: "root",
    });
    const seen = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command: command.id }),
      ({ stdout }) => stdout.includes("\n"),
      30_000,
    );
    return counted(seen.stdout);
  }

  async function unharmed(): Promise<void> {
    const begun = performance.now();
    expect((await server.sh(sibling, "echo fine > fine; cat fine")).stdout).toBe("fine\n");
    expect(performance.now() - begun).toBeLessThan(5_000);
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
    // In a session of its own: it ends with a signal to all of its group.
    const unlimited = spawnSync("setsid", ["-w", join(server.project, "exhaust"), "processes", "100"], { encoding: "utf8" });
    expect(unlimited.stdout, "what nothing limits gets them all").toBe("100 enough\n");
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
    const result = await exhaust("memory", TOO_MUCH_MIB);
    expect(result.end).toMatchObject({ cause: "out-of-memory", signal: "SIGKILL" });
    expect(exhaustHost("memory", TOO_MUCH_MIB), "what nothing limits gets it all").toBe(`${TOO_MUCH_MIB} enough\n`);
    expect((await server.sh(box, "echo works")).stdout).toBe("works\n");
    expect((await server.sh(box, "exit 3")).end).toMatchObject({ cause: "exit", exitCode: 3 });
  });

  test.each(["memfd", "shm"])("RS-03: pays for %s with its own memory", async (kind) => {
    const result =
      kind === "memfd"
        ? await exhaust("memfd", TOO_MUCH_MIB)
        : await server.sh(box, `dd if=/dev/zero of=/dev/shm/hog bs=1M count=${TOO_MUCH_MIB}`, { user: "root" });
    expect(result.end).toMatchObject({ cause: "out-of-memory" });
    // What nothing limits gets it all: a file of memory, and one in a file system of memory.
    const unlimited = kind === "memfd" ? "memfd" : "allocation";
    expect(exhaustHost(unlimited, TOO_MUCH_MIB)).toBe(`${TOO_MUCH_MIB} enough\n`);
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

  test("RS-07: without a user of its own for each, one program's inotify instances are all that another may have", async () => {
    const as = ["--reuid", String(NOBODYS_UID), "--clear-groups", join(server.project, "exhaust"), "watchers"];
    const greedy = spawn("setpriv", [...as, "10000000", "hold"], { stdio: ["pipe", "pipe", "inherit"] });
    const [said] = (await once(greedy.stdout, "data")) as [Buffer];
    const next = spawnSync("setpriv", [...as, "1"], { encoding: "utf8" }).stdout;
    greedy.stdin.end();
    await once(greedy, "exit");
    expect([counted(said.toString())[1], next]).toEqual(["EMFILE", "0 EMFILE\n"]);
  });

  test.each(["watches", "pipes", "queues", "timers", "descriptors", "epolls", "sockets"])(
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
      expect(exhaustHost(resource, "8")).toBe("8 enough\n");
    },
  );

  test("RS-10: takes every port that its loopback gives away, and the others still get theirs", async () => {
    // One process may not have as many descriptors as there are ports.
    const errors = [await hold("ports", "15000"), await hold("ports", "100000")].map(([, error]) => error);
    expect(errors).toEqual(["enough", "EADDRINUSE"]);
    expect((await exhaust("ports", "8")).stdout).toBe("0 EADDRINUSE\n");
    const others = await server.client.call("runCommand", { sandbox: sibling, command: [join(server.project, "exhaust"), "ports", "8"] });
    expect(others.stdout).toBe("8 enough\n");
    expect(exhaustHost("ports", "8")).toBe("8 enough\n");
  });

  test("RS-07: has no keys, and takes at most half of the asynchronous requests that the machine counts for all together", async () => {
    expect(counted((await exhaust("keys", "1")).stdout)).toEqual([0, "EPERM"]);
    const [most, used] = ["aio-max-nr", "aio-nr"].map((name) => Number(readFileSync(`/proc/sys/fs/${name}`, "utf8")));
    const half = Math.floor(((most ?? 0) / 2 - (used ?? 0)) / AIO_REQUESTS);
    const [taken, error] = await hold("aio", String(half * 2));
    expect([taken > 0, taken <= half, error]).toEqual([true, true, "EAGAIN"]);
    const more = String(half - taken + 1);
    expect(execFileSync(join(server.project, "exhaust"), ["aio", more], { encoding: "utf8" })).toBe(`${more} enough\n`);
  });

  test("LIM-1: programs size themselves by the limits, and running ones follow new limits", async () => {
    expect(await sizes()).toEqual(sizesFor(1, SMALL.memoryBytes));
    const { pid } = await server.sh(box, "exec sleep 600", { background: true });
    const processors = `awk '/Cpus_allowed_list/ { print $2 }' /proc/${pid}/status`;
    const one = (await server.sh(box, processors)).stdout;
    expect(one, "one processor").toMatch(/^\d+\n$/);

    await server.client.call("limitSandbox", { sandbox: box, cpus: 64, memoryBytes: 512 * MIB });
    expect(await sizes()).toEqual(sizesFor(availableParallelism(), 512 * MIB));
    const all = (await server.sh(box, `${processors}; cat /sys/devices/system/cpu/online`)).stdout.split("\n");
    expect(all[0], "as new ones").toBe(all[1]);
    await server.client.call("limitSandbox", { sandbox: box, cpus: 0.5 });
    expect((await server.sh(box, `${processors}; nproc`)).stdout).toBe(`${one}1\n`);
  });

  test("LIM-1: the memory that is left inside is that of the sandbox", async () => {
    const available = "awk '/^MemAvailable/ { print $2 * 1024 }' /proc/meminfo";
    const before = Number((await server.sh(box, available)).stdout);
    expect(before).toBeLessThanOrEqual(SMALL.memoryBytes);
    await server.sh(box, "head -c 100M /dev/zero > /dev/shm/held");
    await eventually(
      () => server.sh(box, available),
      ({ stdout }) => Number(stdout) < before - 90 * MIB,
    );
  });

  test("LIM-1: what tells the limits can't be written, not even by root inside", async () => {
    const files = "/proc/meminfo /sys/devices/system/cpu/online $(find /sys/fs/cgroup /sys/cell -type f)";
    const each = (line: string) => server.sh(box, `for file in ${files}; do ${line}; done`, { user: "root" });
    expect((await each('[ -e "$file" ] && echo there')).stdout.split("\n").length).toBeGreaterThan(10);
    expect((await each('(echo 1 >> "$file") 2>&1 | grep -qE "Read-only|denied" || echo "$file"')).stdout).toBe("");
    expect(
      (await server.sh(box, "mkdir /sys/fs/cgroup/*/x /sys/fs/cgroup/x; mount -o remount,rw /sys", { user: "root" })).end,
    ).not.toMatchObject({ code: 0 });
    const seen = (
      await server.sh(
        box,
        "cat /proc/self/cgroup; find /sys/fs/cgroup -mindepth 2 -type d; cat $(find /sys/fs/cgroup -name cgroup.procs | head -1)",
        { user: "root" },
      )
    ).stdout;
    expect(seen, "its own groups, where paths begin").toMatch(/^(\d+:.*memory|0:):\/$/m);
    expect(seen, "and no other").not.toContain("vivarium");
  });

  test("LIM-1: says which limits hold and holds them in the kernel", async () => {
    const detail = await server.client.call("inspectSandbox", { sandbox: box });
    expect(detail).toMatchObject({ limits: SMALL, limitsHeld: "hard", limitsSeen: ["cpus", "memory"] });
  });
});
