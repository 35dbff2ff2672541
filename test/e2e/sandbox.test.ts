import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a sandbox", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "hello.txt": "hello\n", ".env": "SECRET=1\n", "src/a.js": "1\n" } });
  });

  afterAll(async () => server.remove());

  test("CLONE-1: has the machine's files and packages and the project with untracked files, at their own paths", async () => {
    const box = await server.create();
    const inside = await server.sh(box.id, "cat hello.txt .env; cat /etc/os-release; pwd; id -u");
    expect(inside.stdout).toBe(`hello\nSECRET=1\n${readFileSync("/etc/os-release", "utf8")}${server.project}\n0\n`);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-3: nothing done inside changes reality", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo changed > hello.txt; echo x > /etc/vivarium-was-here; rm -rf /usr/share/doc; rm -rf src");
    expect(readFileSync(join(server.project, "hello.txt"), "utf8")).toBe("hello\n");
    expect(readFileSync(join(server.project, "src/a.js"), "utf8")).toBe("1\n");
    expect(() => readFileSync("/etc/vivarium-was-here")).toThrow("ENOENT");
    expect((await server.sh(box.id, "cat hello.txt /etc/vivarium-was-here; ls src /usr/share/doc 2>&1 | grep -c 'No such'")).stdout).toBe(
      "changed\nx\n2\n",
    );
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-5: files changed in reality after the clone do not change inside, and CLONE-6 tells which moved", async () => {
    const box = await server.create();
    writeFileSync(join(server.project, "hello.txt"), "later\n");
    writeFileSync(join(server.project, "new.txt"), "new\n");
    expect((await server.sh(box.id, "cat hello.txt; ls new.txt 2>&1")).stdout).toContain("hello\n");
    const staleness = await server.client.call("staleness", { sandbox: box.id });
    expect(staleness.stale).toBe(true);
    expect(staleness.changes.map(({ path, status }) => `${status} ${path}`).toSorted()).toEqual(["added new.txt", "changed hello.txt"]);
    const fresh = await server.create();
    expect((await server.sh(fresh.id, "cat hello.txt new.txt")).stdout).toBe("later\nnew\n");
    for (const each of [box, fresh]) await server.client.call("removeSandbox", { sandbox: each.id });
    writeFileSync(join(server.project, "hello.txt"), "hello\n");
  });

  test("BOX-2: passes output, exit code, signals, time limit, folder, environment and user", async () => {
    const box = await server.create({ env: { PATH: process.env["PATH"] ?? "", GREETING: "hi", API_TOKEN: "do-not-pass-on" } });
    const result = await server.sh(box.id, "echo out; echo err >&2; exit 3");
    expect([result.stdout, result.stderr, result.end?.exitCode, result.end?.cause]).toEqual(["out\n", "err\n", 3, "exit"]);
    expect((await server.sh(box.id, "kill -TERM $$")).end).toMatchObject({ cause: "signal", signal: "SIGTERM", exitCode: 143 });
    expect((await server.sh(box.id, "sleep 60", { timeoutMs: 100 })).end).toMatchObject({ cause: "timeout", exitCode: 124 });
    expect(
      (await server.sh(box.id, "pwd; echo $GREETING $API_TOKEN $MORE; id -un", { cwd: "/usr", env: { MORE: "more" }, user: "nobody" }))
        .stdout,
    ).toBe("/usr\nhi more\nnobody\n");
    expect((await server.sh(box.id, "cat", { stdin: "through\n" })).stdout).toBe("through\n");
    expect((await server.client.call("inspectSandbox", { sandbox: box.id })).environmentLeftOut).toEqual(["API_TOKEN"]);
    await expect(server.client.call("runCommand", { sandbox: box.id, command: ["no-such-program"] })).rejects.toMatchObject({
      code: "command_not_found",
    });
    await expect(server.client.call("runCommand", { sandbox: box.id, command: ["/etc/passwd"] })).rejects.toMatchObject({
      code: "command_not_runnable",
    });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("a command's process is as old as the command, however long ago its sandbox was made ready for it", async () => {
    const box = await server.create();
    // Both in seconds since the machine started; /proc counts hundredths.
    const before = Number((await server.sh(box.id, "sleep 0.2; cut -d' ' -f1 /proc/uptime")).stdout);
    const { stdout } = await server.sh(box.id, "cut -d' ' -f1,4,5,6,22 /proc/$$/stat");
    const [pid, parent, group, session, began] = stdout.trim().split(" ").map(Number);
    expect((began ?? 0) / 100).toBeGreaterThanOrEqual(before - 0.01);
    expect([parent, group, session]).toEqual([1, pid, pid]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("BOX-5: a background command goes on, is listed, attached to and killed", async () => {
    const box = await server.create();
    const command = await server.sh(box.id, "echo begun; while :; do sleep 0.1; done", { background: true });
    expect(command.running).toBe(true);
    const listed = await server.client.call("listCommands", { sandbox: box.id });
    expect(listed.commands.map(({ id }) => id)).toEqual([command.id]);
    const log = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box.id, command: command.id }),
      ({ stdout }) => stdout !== "",
    );
    expect(log.stdout).toBe("begun\n");
    await server.client.call("killCommand", { sandbox: box.id, command: command.id, signal: "KILL" });
    const ended = await eventually(
      () => server.client.call("inspectCommand", { sandbox: box.id, command: command.id }),
      ({ running }) => !running,
    );
    expect(ended.end).toMatchObject({ cause: "cancelled", exitCode: 137 });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("BOX-1 and BOX-10: pauses and resumes, and refuses illegal transitions", async () => {
    const box = await server.create();
    await server.sh(box.id, "while :; do date +%s%N > /tmp/beat; done", { background: true });
    await eventually(
      () => server.sh(box.id, "cat /tmp/beat"),
      ({ stdout }) => stdout !== "",
    );
    expect((await server.client.call("pauseSandbox", { sandbox: box.id })).state).toBe("paused");
    await expect(server.client.call("pauseSandbox", { sandbox: box.id })).rejects.toMatchObject({ code: "illegal_transition" });
    await expect(server.sh(box.id, "true")).rejects.toMatchObject({ code: "not_running" });
    const before = await server.client.call("inspectSandbox", { sandbox: box.id });
    const after = await eventually(
      () => server.client.call("inspectSandbox", { sandbox: box.id }),
      () => true,
    );
    expect(after.use.cpuMs).toBe(before.use.cpuMs);
    expect((await server.client.call("resumeSandbox", { sandbox: box.id })).state).toBe("running");
    await expect(server.client.call("resumeSandbox", { sandbox: box.id })).rejects.toMatchObject({ code: "illegal_transition" });
    expect((await server.client.call("stopSandbox", { sandbox: box.id })).outcome).toBe("done");
    await expect(server.client.call("stopSandbox", { sandbox: box.id })).rejects.toMatchObject({ code: "illegal_transition" });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect((await server.sh(sandboxes[0]?.id ?? "", "test -e /tmp/beat && echo kept")).stdout).toBe("kept\n");
    for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
  });

  test("a paused sandbox can be snapshotted, stopped and thrown away", async () => {
    const boxes = await Promise.all([server.create(), server.create()]);
    for (const box of boxes) {
      await server.sh(box.id, "while :; do :; done", { background: true });
      await server.client.call("pauseSandbox", { sandbox: box.id });
      await server.client.call("createSnapshot", { sandbox: box.id });
    }
    expect(await server.client.call("stopSandbox", { sandbox: boxes[0]?.id ?? "" })).toMatchObject({ state: "completed", outcome: "done" });
    for (const box of boxes) await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("SNAP-1 to SNAP-3: snapshots hold the whole system, roll back and fork independently", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo one > state; echo one > /etc/state");
    const first = await server.client.call("createSnapshot", { sandbox: box.id, name: "one" });
    await server.sh(box.id, "echo two > state; echo two > /etc/state; rm -rf /usr/bin");
    await server.client.call("createSnapshot", { sandbox: box.id, name: "two" });
    const tree = await server.client.call("listSnapshots", { sandbox: box.id });
    expect(tree.snapshots.map(({ name, parent, current }) => [name, parent, current])).toEqual([
      ["one", null, false],
      ["two", first.id, true],
    ]);
    await server.client.call("rollback", { sandbox: box.id, snapshot: "one" });
    expect((await server.sh(box.id, "cat state /etc/state; ls /usr/bin/env")).stdout).toBe("one\none\n/usr/bin/env\n");
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id, count: 2 });
    const [left, right] = sandboxes.map(({ id }) => id);
    await server.sh(left ?? "", "echo left > state");
    expect((await server.sh(right ?? "", "cat state")).stdout).toBe("one\n");
    expect((await server.sh(box.id, "cat state")).stdout).toBe("one\n");
    for (const each of [box, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: each.id });
  });

  test("the logs of all commands together have a bound, and the newest stay", async () => {
    const box = await server.create();
    const results = [];
    for (let round = 0; round < 20; round += 1) results.push(await server.sh(box.id, "head -c 16000000 /dev/zero"));
    const folder = join(server.paths.home, "logs", box.id);
    const bytes = (): number => readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    await eventually(bytes, (sum) => sum <= 256 * 1024 ** 2);
    expect((await server.client.call("inspectCommand", { sandbox: box.id, command: results.at(-1)?.id ?? "" })).stdout.length).toBe(
      1024 ** 2,
    );
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("the diff names what was added, changed and deleted, with line counts", async () => {
    const box = await server.create();
    await server.sh(box.id, "echo more >> hello.txt; rm -r src; mkdir lib; printf 'a\\nb\\n' > lib/new; touch .env; ln -s hello.txt link");
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id, stat: true });
    const rows = entries.map(({ status, path, added, removed }) => [status, path, added, removed]);
    expect(rows.toSorted((left, right) => String(left).localeCompare(String(right)))).toEqual([
      ["added", "lib", null, null],
      ["added", "lib/new", 2, 0],
      ["added", "link", null, null],
      ["changed", "hello.txt", 1, 0],
      ["deleted", "src", null, null],
      ["deleted", "src/a.js", 0, 1],
    ]);
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("the same idempotency key gives the same sandbox, also when asked twice at once", async () => {
    const [one, two] = await Promise.all([server.create({ idempotencyKey: "k" }), server.create({ idempotencyKey: "k" })]);
    expect(one.id).toBe(two.id);
    await server.client.call("removeSandbox", { sandbox: one.id });
  });

  test("BOX-7: ten sandboxes at once work side by side", async () => {
    const boxes = await Promise.all(Array.from({ length: 10 }, () => server.create()));
    const outputs = await Promise.all(boxes.map((box, index) => server.sh(box.id, `echo ${index} > mine; sleep 0.1; cat mine`)));
    expect(outputs.map(({ stdout }) => stdout.trim())).toEqual(boxes.map((_, index) => String(index)));
    await Promise.all(boxes.map((box) => server.client.call("removeSandbox", { sandbox: box.id })));
  });

  describe("a create with a command", () => {
    test("BOX-2: leaves no sandbox behind that its caller does not hear of", async () => {
      const before = (await server.client.call("listSandboxes", {})).sandboxes.length;
      await expect(server.create({ run: { command: ["/no/such/program"] } })).rejects.toMatchObject({ code: "command_not_found" });
      expect((await server.client.call("listSandboxes", {})).sandboxes).toHaveLength(before);
    });
  });
});
