/** A server of an ordinary user: one mapped id, plain storage, limits watched. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { all, compile, outcomes } from "../support/attacks.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to no account. */
const UID = 64_123;

describe("a server of an ordinary user", needs("root", "user-namespaces", "compiler", "open-checkout"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ uid: UID, files: { "hello.txt": "hello\n", "src/a.js": "1\n" } });
  });
  afterAll(async () => server?.remove());

  test("runs without root on plain storage and says so", async () => {
    expect(await server.client.call("status", {})).toMatchObject({ mode: "user", storage: "plain" });
    expect(statSync(server.paths.home).uid).toBe(UID);
  });

  test("LIM-1: an explicit limit that nothing can hold is refused, others are watched", async () => {
    await expect(server.create({ limits: { cpus: 1 } })).rejects.toMatchObject({
      code: "limit_unsupported",
      message: expect.stringContaining("cpus"),
    });
    const box = await server.create({ limits: { memoryBytes: 512 * 1024 ** 2 } });
    expect(box.limitsHeld).toBe("watched");
    const told = "awk '/^MemTotal/ { print $2 / 1024 }' /proc/meminfo; nproc; (echo 1 > /proc/meminfo) 2>/dev/null || echo refused";
    expect((await server.sh(box.id, told)).stdout).toBe(`512\n${availableParallelism()}\nrefused\n`);
    await server.client.call("limitSandbox", { sandbox: box.id, memoryBytes: 1024 ** 3 });
    expect((await server.sh(box.id, told)).stdout).toMatch(/^1024\n/);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("says that its sandboxes have one user alone, where another one is asked for", async () => {
    const box = await server.create();
    for (const user of ["root", "nobody"])
      await expect(server.sh(box.id, "id", { user })).rejects.toMatchObject({
        message: `There is no user ${user} in the sandbox.`,
        remedy: expect.stringMatching(/ordinary user.*leave .--user. out/),
      });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-1 and CLONE-3: clones the machine and the project, and changes neither", async () => {
    const box = await server.create();
    const inside = await server.sh(
      box.id,
      "id -u; cat hello.txt; cat /etc/os-release | head -1; echo changed > hello.txt; echo new > new.txt; rm -r src; cat hello.txt; pwd",
    );
    expect(inside.stdout).toBe(`${UID}\nhello\n${readFileSync("/etc/os-release", "utf8").split("\n")[0]}\nchanged\n${server.project}\n`);
    expect(readFileSync(join(server.project, "hello.txt"), "utf8")).toBe("hello\n");
    expect(readdirSync(server.project).toSorted()).toEqual([".git", "hello.txt", "src"]);
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id });
    expect(entries.map(({ status, path }) => `${status} ${path}`).toSorted()).toEqual([
      "added new.txt",
      "changed hello.txt",
      "deleted src",
      "deleted src/a.js",
    ]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("has the walls: filter, no new privileges, namespaces, no network, no host processes", async () => {
    const box = await server.create();
    const line =
      "grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status | tr -d '\\t\\n'; ls -d /proc/[0-9]* | wc -l; cat /proc/net/dev | tail -n +3 | wc -l; cat /proc/self/uid_map";
    const { stdout } = await server.sh(box.id, line);
    expect(stdout).toMatch(new RegExp(`^CapEff:0000000000000000NoNewPrivs:1Seccomp:2[1-9]\\n1\\n +${UID} +${UID} +1\\n$`));
    expect((await server.sh(box.id, "unshare -U true")).end?.exitCode).not.toBe(0);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("PR-01 to PR-06: is refused what only the machine may do", async () => {
    compile(server.project, "attack", "abi", "granted");
    const box = await server.create();
    const run = async (program: string, ...names: readonly string[]) =>
      outcomes((await server.client.call("runCommand", { sandbox: box.id, command: [join(server.project, program), ...names] })).stdout);
    const refused = [
      "unshare-user",
      "clone-user",
      "io_uring",
      "userfaultfd",
      "bpf",
      "perf",
      "keyctl",
      "add_key",
      "raw",
      "mount",
      "umount",
      "fsopen",
      "pivot_root",
      "kvm-device",
      "block-device",
      "ptrace-1",
      "descriptor-of-1",
      "type-into-terminal",
    ];
    expect(await run("attack", ...refused)).toEqual(all(refused, "EPERM"));
    expect(await run("attack", "packet", "netlink-generic")).toEqual({ packet: "EAFNOSUPPORT", "netlink-generic": "EPROTONOSUPPORT" });
    expect(await run("granted", "aio", "list-own-socket")).toEqual(all(["aio", "list-own-socket"], "done"));
    const unreadable = ["memory-of-1", "root-of-1"];
    expect(await run("attack", ...unreadable)).toEqual(all(unreadable, "EACCES"));
    const doors = await run("abi");
    expect(doors).toEqual(all(Object.keys(doors), "SIGSYS"));
    rmSync(join(server.project, "attack"));
    for (const name of ["abi", "granted"]) rmSync(join(server.project, name));
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("SNAP-1 to SNAP-3: snapshots, rolls back and forks", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo one > state; echo one > /tmp/state; mkdir deep; echo d > deep/f");
    await server.client.call("createSnapshot", { sandbox: box.id, name: "one" });
    await server.sh(box.id, "echo two > state; echo two > /tmp/state; rm -r deep src; mkdir src");
    await server.client.call("rollback", { sandbox: box.id, snapshot: "one" });
    expect((await server.sh(box.id, "cat state /tmp/state deep/f src/a.js")).stdout).toBe("one\none\nd\n1\n");
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id, count: 2 });
    await server.sh(sandboxes[0]?.id ?? "", "echo left > state");
    expect((await server.sh(sandboxes[1]?.id ?? "", "cat state /tmp/state")).stdout).toBe("one\none\n");
    for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
  });

  test("BOX-9: sandboxes and their commands survive a kill of the server", async () => {
    const box = await server.create();
    const command = await server.sh(box.id, "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done", { background: true });
    await server.kill();
    await server.up();
    expect((await server.client.call("inspectSandbox", { sandbox: box.id })).state).toBe("running");
    await server.sh(box.id, "touch go");
    const ended = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box.id, command: command.id }),
      ({ running }) => !running,
    );
    expect([ended.stdout, ended.end?.exitCode]).toEqual(["begun\ndone\n", 0]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("LIM-3: a command that takes too much memory is ended and told so", async () => {
    const box = await server.create({ limits: { memoryBytes: 128 * 1024 ** 2 } });
    expect(box.limitsHeld).toBe("watched");
    const result = await server.sh(box.id, "perl -e '$x = q(x) x 400_000_000; sleep 20'");
    expect(result.end).toMatchObject({ cause: "out-of-memory" });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("LIM-3: a command that finds no room for a process is told so, and shared memory has a bound", async () => {
    const box = await server.create({ limits: { processes: 48 } });
    const crowd = await server.sh(box.id, "for i in $(seq 100); do sleep 1 & done; wait; exit 1");
    expect(crowd.end).toMatchObject({ cause: "too-many-processes" });
    const shared = await eventually(
      () => server.sh(box.id, "dd if=/dev/zero of=/dev/shm/hog bs=1M count=600"),
      ({ stderr }) => !stderr.includes("fork"),
    );
    expect(shared.stderr).toContain("No space left");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("LIM-3: a sandbox that outgrows its disk is stopped within seconds and says why", async () => {
    const box = await server.create({ limits: { diskBytes: 32 * 1024 ** 2 } });
    await server.sh(box.id, "dd if=/dev/zero of=fill bs=1M count=100");
    const ended = await eventually(
      () => server.client.call("inspectSandbox", { sandbox: box.id }),
      ({ state }) => state === "failed",
      15_000,
    );
    expect(ended.reason).toContain("disk full");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-4: files of others that the user can read outside but that are hidden stay hidden", async () => {
    writeFileSync("/var/tmp/viv-test-user", "canary", { mode: 0o644 });
    const box = await server.create();
    expect(
      (
        await server.sh(
          box.id,
          "ls -A /home /root /mnt /var/tmp /tmp/viv-* 2>/dev/null | grep -c viv-test-user; cat /var/tmp/viv-test-user /etc/shadow 2>/dev/null",
        )
      ).stdout,
    ).toBe("0\n");
    expect(existsSync("/var/tmp/viv-test-user")).toBe(true);
    rmSync("/var/tmp/viv-test-user");
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-9: removing leaves nothing behind", async () => {
    const box = await server.create();
    await server.sh(box.id, "mkdir locked; touch locked/file; chmod 0 locked; mkdir /tmp/x; chmod 0 /tmp/x");
    await server.client.call("removeSandbox", { sandbox: box.id });
    // Also what was moved aside to be removed in the background.
    await eventually(
      () => readdirSync(join(server.paths.home, "volumes/volumes")),
      (left) => left.length === 0,
    );
    expect(readdirSync(join(server.paths.home, "run"))).toEqual([]);
  });

  test("works with a home and a state folder that lie among the system's folders", async () => {
    const elsewhere = await TestServer.start({ uid: UID, parent: "/opt" });
    try {
      const box = await elsewhere.create();
      expect((await elsewhere.sh(box.id, "cat hello.txt; ls -d /usr/bin /etc/passwd; echo x > ~/mine && cat ~/mine")).stdout).toBe(
        "hello\n/etc/passwd\n/usr/bin\nx\n",
      );
    } finally {
      await elsewhere.remove();
    }
  });

  test("FS-04: a link that a sandbox put above its home leads the server nowhere when it is launched again", async () => {
    const place = realpathSync(mkdtempSync(join(tmpdir(), "viv-above-")));
    const home = join(place, "above/home");
    const reality = join(place, "reality");
    for (const folder of [home, reality]) mkdirSync(folder, { recursive: true });
    execFileSync("chown", ["-R", `${UID}:${UID}`, place]);
    const linked = await TestServer.start({ uid: UID, env: { HOME: home } });
    try {
      const box = (await linked.create({ env: { HOME: home } })).id;
      const line = `echo here > ~/here && mv ${place}/above /tmp/away && ln -s ${reality} ${place}/above && cat /tmp/away/home/here`;
      expect((await linked.sh(box, line)).stdout).toBe("here\n");
      await expect(linked.client.call("forkSandbox", { sandbox: box })).rejects.toMatchObject({ code: "cell_failed" });
      expect(readdirSync(reality)).toEqual([]);
      // The same folder is made where a link is followed.
      const link = join(place, "link");
      symlinkSync(reality, link);
      mkdirSync(join(link, "home"), { recursive: true });
      expect(readdirSync(reality)).toEqual(["home"]);
    } finally {
      await linked.remove();
      rmSync(place, { recursive: true, force: true });
    }
  });
});
