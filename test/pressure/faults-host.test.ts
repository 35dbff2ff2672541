/** F of the threat list about the host: out of inodes or memory, without cgroups, a stopped storage, another version. */
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { nativeProgram } from "../support/native-programs.ts";
import { eventually, TestServer } from "../support/server.ts";
import { missing, needs } from "../support/skip.ts";
import { SmallDisk } from "../support/small-disk.ts";

const MIB = 1024 ** 2;
const STORAGES = (["btrfs", "plain"] as const).filter((name) => name === "plain" || missing("btrfs") === undefined);

describe.each(STORAGES)("a disk without inodes under %s", needs("root"), (storage) => {
  let disk: SmallDisk;
  beforeAll(async () => {
    disk = await SmallDisk.make({ storage, spares: false }, 3000, 4000);
  });
  afterAll(async () => disk?.remove());

  test.each([
    { left: 0, what: "with none left" },
    { left: 150, what: "with few left" },
  ])("F-16: $what, what needs some says so, nothing is half there, and all works again without a restart", async ({ left }) => {
    const { server } = disk;
    const box = await server.create();
    await server.sh(box.id, "echo precious > kept");
    disk.fillFiles(left);
    const volumes = () => readdirSync(join(server.paths.home, storage === "btrfs" ? "pool" : "volumes", "volumes"));
    const before = volumes();
    const full = { code: "disk_full" };
    await expect(server.create()).rejects.toMatchObject(full);
    disk.fillFiles(left);
    await expect(server.client.call("createSnapshot", { sandbox: box.id })).rejects.toMatchObject(full);
    await expect(server.client.call("forkSandbox", { sandbox: box.id })).rejects.toMatchObject(full);
    expect((await server.sh(box.id, "cat kept; echo more >> kept")).stdout).toBe("precious\n");
    await eventually(volumes, (now) => now.length === before.length);
    expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).toEqual([box.id]);
    expect((await server.client.call("listSnapshots", { sandbox: box.id })).snapshots).toEqual([]);
    disk.free();
    await server.client.call("createSnapshot", { sandbox: box.id });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("precious\nmore\n");
    for (const { id } of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("F-16: with enough for a clone, but not for what it is to hide, it says so", async () => {
    const { server } = disk;
    disk.fillFiles(300);
    const mask = ["/usr/share/doc", ...Array.from({ length: 600 }, (_, index) => `/usr/share/hidden-${index}`)];
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ mask }));
    await expect(server.create()).rejects.toMatchObject({ code: "disk_full" });
    disk.free();
    const box = await server.create();
    expect((await server.sh(box.id, "ls /usr/share")).stdout.split("\n")).not.toContain("doc");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});

/** Damages the pool so that it can't be mounted; the answer undoes it. */
function hideSuperblock(file: string): () => void {
  const [at, magic] = [0x10040, Buffer.alloc(8)];
  const fd = openSync(file, "r+");
  readSync(fd, magic, 0, magic.length, at);
  expect(magic.toString()).toBe("_BHRfS_M");
  writeSync(fd, Buffer.alloc(8), 0, magic.length, at);
  return () => {
    writeSync(fd, magic, 0, magic.length, at);
    closeSync(fd);
  };
}

describe("storage that was stopped", needs("root", "btrfs"), () => {
  let disk: SmallDisk;
  beforeAll(async () => {
    disk = await SmallDisk.make({ spares: false }, 3000);
  });
  afterAll(async () => disk?.remove());

  test("F-18: is opened again by a server that found it so, says so until then, and keeps the files", async () => {
    const { server } = disk;
    const box = await server.create();
    await server.sh(box.id, "echo precious > kept; sync");
    const writing = await server.client.exec(box.id, {
      command: ["/bin/sh", "-c", "read go; head -c 60000000 /dev/urandom > big; sync; exit 0"],
      stdin: true,
    });
    disk.fill(0);
    await writing.write(Buffer.from("go\n"));
    await writing.end;
    const stopped = () =>
      / ro[, ]/.test(
        readFileSync("/proc/self/mountinfo", "utf8")
          .split("\n")
          .find((line) => line.includes(`${server.paths.home}/pool `))
          ?.split(" - ")[1] ?? "",
      );
    await eventually(stopped, (is) => is);
    await server.kill();
    disk.free();
    const whole = hideSuperblock(join(server.paths.home, "pool.img"));
    await server.up();
    await expect(server.create()).rejects.toMatchObject({ code: "storage_stopped" });
    const lost = await eventually(
      () => server.client.call("inspectSandbox", { sandbox: box.id }),
      ({ state }) => state === "failed",
      20_000,
    );
    expect(lost).toMatchObject({ outcome: "lost", reason: expect.stringContaining("full or failed") });
    await eventually(stopped, (is) => !is);
    // It is unmounted and can't be mounted: nothing goes to the folder it lies in.
    await expect(server.create()).rejects.toMatchObject({ code: "storage_stopped" });
    whole();
    const after = await eventually(
      () => server.create().catch(() => undefined),
      (made) => made !== undefined,
      20_000,
    );
    expect((await server.sh(after?.id ?? "", "cat hello.txt; echo new > file; cat file")).stdout).toBe("hello\nnew\n");
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat kept")).stdout).toBe("precious\n");
    await eventually(
      async () => (await server.client.call("listEvents", { limit: 1000 })).events.some(({ type }) => type === "storage.mended"),
      (isTold) => isTold,
    );
  }, 60_000);

  test("F-18: that can't be opened at all keeps the server from starting, in clear words, and is left as it is", async () => {
    const { server } = disk;
    for (const { id } of (await server.client.call("listSandboxes", {})).sandboxes)
      await server.client.call("removeSandbox", { sandbox: id });
    await server.down();
    const whole = hideSuperblock(join(server.paths.home, "pool.img"));
    const refused = await server.second();
    whole();
    expect(refused).toMatchObject({ code: 5, log: expect.stringMatching(/pool\.img can't be mounted.*storage_damaged.*btrfs check/) });
    await server.up();
    expect((await server.sh((await server.create()).id, "cat hello.txt")).stdout).toBe("hello\n");
  });
});

describe("a machine that runs out of memory", needs("root"), () => {
  const CALLER = 150;
  /** Root may not lower its own score everywhere; what a caller raised can always be taken back. */
  const PROTECTED = spawnSync("/bin/sh", ["-c", "echo -900 > /proc/self/oom_score_adj"], { stdio: "ignore" }).status === 0 ? -900 : 0;
  const score = (pid: number): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
  let server: TestServer;
  beforeAll(async () => {
    const raised = ["/bin/sh", "-c", `echo ${CALLER} > /proc/self/oom_score_adj; exec "$@"`, "sh"];
    server = await TestServer.start({ through: raised, files: { "vivarium.json": '{"driver":"folder"}', "hello.txt": "hello\n" } });
  });
  afterAll(async () => server?.remove());

  const children = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);

  test("F-19: ends neither the server nor its helper first, and everything they start has the score of the process that started the server", async () => {
    // Without the measures taken, a child is what its parent is.
    const inherited = execFileSync("/bin/sh", ["-c", "echo 33 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj"]);
    expect(Number(inherited)).toBe(33);
    expect(score(server.pid)).toBe(PROTECTED);
    const [helper] = children(server.pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0host"));
    expect(score(helper ?? 0)).toBe(PROTECTED);
    const walled = await server.create();
    const { processId } = await server.client.call("inspectSandbox", { sandbox: walled.id });
    expect(score(processId ?? 0)).toBe(CALLER);
    for (const user of ["root", "nobody"]) {
      const seen = await server.sh(walled.id, "echo -1 > /proc/$$/oom_score_adj; cat /proc/$$/oom_score_adj", { user, cwd: "/" });
      expect(seen.stdout).toBe(`${CALLER}\n`);
    }
    await server.client.call("trust", { project: server.project });
    const unwalled = await server.create();
    expect(unwalled).toMatchObject({ walled: false });
    expect((await server.sh(unwalled.id, "cat /proc/self/oom_score_adj")).stdout).toBe(`${CALLER}\n`);
    expect(score(server.pid)).toBe(PROTECTED);
    for (const { id } of [walled, unwalled]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("F-19: memory that a sandbox ran out of is told once, and the others do not notice", async () => {
    rmSync(join(server.project, "vivarium.json"), { force: true });
    const sibling = await server.create();
    const box = await server.create({ limits: { memoryBytes: 64 * MIB } });
    const result = await server.sh(box.id, "head -c 300000000 /dev/zero | tail -c 299999999 > /dev/null");
    expect(result.end).toMatchObject({ cause: "out-of-memory" });
    expect((await server.sh(box.id, "exit 3")).end).toMatchObject({ cause: "exit" });
    await server.kill();
    await server.up();
    const { events } = await server.client.call("listEvents", { limit: 1000 });
    const told = events.filter(({ data }) => data["cause"] === "out-of-memory");
    expect(told).toMatchObject([{ type: "command.ended", sandbox: box.id, data: { id: result.id } }]);
    for (const { id } of [sibling, box]) expect((await server.sh(id, "echo works")).stdout).toBe("works\n");
  });
});

describe("a machine without cgroups", needs("root"), () => {
  let server: TestServer;
  beforeAll(async () => {
    const hidden = ["unshare", "-m", "/bin/sh", "-c", 'umount -R -l /sys/fs/cgroup; exec "$@"', "sh"];
    server = await TestServer.start({ through: hidden, config: { spares: false } });
  });
  afterAll(async () => server?.remove());

  test("F-26: refuses limits that nothing would hold, says so, and works with those that are watched", async () => {
    await expect(server.create({ limits: { cpus: 1 } })).rejects.toMatchObject({ code: "limit_unsupported" });
    const box = await server.create();
    expect(box).toMatchObject({ limitsHeld: "watched" });
    expect((await server.sh(box.id, "echo works")).stdout).toBe("works\n");
    const { findings } = await server.client.call("doctor", {});
    expect(findings.find(({ check }) => check === "limits")).toMatchObject({
      verdict: "reduced",
      detail: expect.stringMatching(/no cgroups.*CPU limit.*refused/),
      remedy: expect.any(String),
    });
  });
});

describe("sandboxes of another version", needs("root", "compiler"), () => {
  let other: string;
  let server: TestServer;
  let box: Sandbox;

  beforeAll(async () => {
    const cc = "cc -std=gnu11 -O0 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64";
    const rest = "$(find . -mindepth 2 -name '*.c' ! -path './tests/*' ! -path './front/*')";
    // A server starts no cell that says another version: this one says so only once it is process 1.
    other = nativeProgram("other-version", `${cc} -c -o "$OUT.o" main.c; ${cc} -DPROTOCOL_VERSION=2 -o "$OUT" "$OUT.o" ${rest}`);
    server = await TestServer.start({ config: { spares: false } });
    await server.down();
    await server.up({ VIV_CELL: other });
    box = await server.create({ name: "elder" });
    await server.kill();
  }, 60_000);

  afterEach(() => server.kill());
  afterAll(async () => server?.remove());

  const inspect = () => server.client.call("inspectSandbox", { sandbox: box.id });
  const ALIVE = /another version/;

  test("F-52: are left to run by a server that can't speak with them, which says of each what can be done", async () => {
    await server.up();
    const { processId, ...found } = await inspect();
    expect(found).toMatchObject({ state: "running", reason: expect.stringMatching(ALIVE) });
    expect(existsSync(`/proc/${processId}`)).toBe(true);
    const incompatible = { code: "cell_incompatible", message: expect.stringMatching(ALIVE), remedy: expect.stringContaining("viv fork") };
    await expect(server.sh(box.id, "echo")).rejects.toMatchObject(incompatible);
    await expect(server.client.call("listFiles", { sandbox: box.id, path: "." })).rejects.toMatchObject(incompatible);
    const { events } = await server.client.call("listEvents", { sandbox: box.id, limit: 1000 });
    expect(events.findLast(({ type }) => type === "sandbox.adopted")?.data).toMatchObject({
      name: "elder",
      incompatible: expect.any(String),
    });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat hello.txt")).stdout).toBe("hello\n");
    expect((await server.sh((await server.create()).id, "echo new")).stdout).toBe("new\n");
    expect((await inspect()).processId).toBe(processId);
  });

  test("F-52: are found again by the version that launched them", async () => {
    const { pid } = server;
    await server.up({ VIV_CELL: other });
    expect(server.pid).not.toBe(pid);
    expect(await inspect()).toMatchObject({ state: "running" });
    expect(existsSync(`/proc/${(await inspect()).processId}`)).toBe(true);
  });

  test("F-52: get processes of this version by a rollback, and end when they are told to", async () => {
    await server.up();
    await server.client.call("createSnapshot", { sandbox: box.id, name: "kept" });
    await server.client.call("rollback", { sandbox: box.id, snapshot: "kept" });
    expect((await server.sh(box.id, "cat hello.txt")).stdout).toBe("hello\n");
    expect(await inspect()).toMatchObject({ state: "running", reason: null });
    expect(await server.client.call("stopSandbox", { sandbox: box.id })).toMatchObject({ state: "completed" });
  });
});
