/** BOX-12: an empty workspace on a read-only system, for a user without rights. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import { traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLACES = ["/", "/etc", "/usr/bin", "/var/lib", "/opt", "/root", "/home", "/srv"];

/** Tries to write a file into each folder; prints those where that worked. */
function writing(places: readonly string[]): string {
  return places.map((place) => `{ echo x > ${place}/viv-probe; } 2>/dev/null && echo ${place}`).join("; ");
}

describe("an empty workspace of a root server", needs("root"), () => {
  let server: TestServer;
  let box: OutputOf<"createSandbox">;

  const create = (): Promise<OutputOf<"createSandbox">> =>
    server.client.call("createSandbox", { empty: true, env: { PATH: "/usr/bin:/bin", HOME: "/root", USER: "root" } });

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
    box = await create();
  });

  afterAll(async () => server.remove());

  test("BOX-12: is /workspace, empty, and the user is 1000", async () => {
    expect(box).toMatchObject({ start: { from: "empty" }, readOnly: true, notes: [] });
    const { stdout } = await server.sh(box.id, "pwd; ls -A; id -u; stat -c '%u %a' .; echo $HOME");
    expect(stdout).toBe("/workspace\n1000\n1000 755\n/tmp\n");
  });

  test("BOX-12: nothing can be written but the workspace and temporary files, also by root inside", async () => {
    for (const user of ["1000", "root"]) {
      const { stdout } = await server.sh(box.id, writing([...PLACES, "/workspace", "/tmp", "/var/tmp", "/dev/shm"]), { user });
      expect(stdout.trim().split("\n"), user).toEqual(["/workspace", "/tmp", "/var/tmp", "/dev/shm"]);
      await server.sh(box.id, "rm -f /workspace/viv-probe /tmp/viv-probe /var/tmp/viv-probe /dev/shm/viv-probe", { user });
    }
    expect((await server.sh(box.id, "mount -o remount,rw / || mount --bind /tmp /etc", { user: "root" })).end?.exitCode).not.toBe(0);
  });

  test("BOX-12: commands run as the caller's user by default", async () => {
    const given = await server.create({ user: "4321" });
    expect((await server.sh(given.id, "id -u", { cwd: "/" })).stdout).toBe("4321\n");
    const own = await server.create();
    expect((await server.sh(own.id, "id -u")).stdout).toBe("0\n");
    for (const { id } of [given, own]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("the same lines write everywhere in an ordinary sandbox, and nowhere but in the project of one that is read-only", async () => {
    const open = await server.create({ user: "0" });
    expect((await server.sh(open.id, writing(PLACES))).stdout.trim().split("\n")).toEqual(PLACES);
    const closed = await server.create({ readOnly: true, user: "0" });
    expect((await server.sh(closed.id, writing([...PLACES, server.project]))).stdout).toBe(`${server.project}\n`);
    expect((await server.sh(closed.id, "cat hello.txt")).stdout).toBe("hello\n");
    for (const { id } of [open, closed]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("diff, snapshot, rollback, fork, stop and start work as ever", async () => {
    await server.sh(box.id, "echo one > a.txt");
    await server.client.call("createSnapshot", { sandbox: box.id, name: "first" });
    await server.sh(box.id, "echo two > a.txt; mkdir b; echo x > b/c");
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id });
    expect(entries.map(({ path }) => path).toSorted()).toEqual(["a.txt", "b", "b/c"]);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    const fork = sandboxes[0]?.id ?? "";
    expect((await server.sh(fork, `cat a.txt; pwd; id -u; ${writing(["/etc"])}`)).stdout).toBe("two\n/workspace\n1000\n");
    await server.client.call("rollback", { sandbox: box.id, snapshot: "first" });
    expect((await server.sh(box.id, `cat a.txt; ls; ${writing(["/etc"])}`)).stdout).toBe("one\na.txt\n");
    await server.client.call("stopSandbox", { sandbox: fork });
    await server.client.call("startSandbox", { sandbox: fork });
    expect((await server.sh(fork, `cat a.txt; ${writing(["/etc"])}`)).stdout).toBe("two\n");
    await server.kill();
    await server.up();
    expect((await server.sh(fork, `cat a.txt; ${writing(["/etc"])}`)).stdout).toBe("two\n");
    await server.client.call("removeSandbox", { sandbox: fork });
  });

  test("nothing of it can be promoted or refreshed, and its status says nothing moved", async () => {
    await expect(server.client.call("promote", { sandbox: box.id })).rejects.toMatchObject({ code: "no_project" });
    await expect(server.client.call("refreshSandbox", { sandbox: box.id })).rejects.toMatchObject({ code: "no_project" });
    expect(await server.client.call("sandboxStatus", { sandbox: box.id })).toMatchObject({ stale: false, changes: [] });
    expect(existsSync("/workspace")).toBe(false);
  });

  test("the policy takes /workspace for its project", async () => {
    const made = await server.client.call("createSandbox", { empty: true, level: 1 });
    const judge = async (path: string): Promise<string> =>
      (await server.client.call("decideAction", { sandbox: made.id, action: { kind: "path", path, access: "write" } })).verdict;
    expect([await judge("/workspace/src/a.ts"), await judge("/srv/src/a.ts")]).toEqual(["allow", "deny"]);
    await server.client.call("removeSandbox", { sandbox: made.id });
  });

  for (const point of ["create.row", "create.volume", "create.launch", "create.running"]) {
    test(`F-01: a server killed at ${point} leaves one that works or none`, async () => {
      const before = (await server.client.call("listSandboxes", {})).sandboxes.length;
      const input = { empty: true, idempotencyKey: `empty-${point}` };
      await server.dieAt(point, () => server.client.call("createSandbox", input));
      const made = await server.client.call("createSandbox", input);
      expect((await server.client.call("listSandboxes", {})).sandboxes).toHaveLength(before + 1);
      expect((await server.sh(made.id, "id -u; pwd")).stdout).toBe("1000\n/workspace\n");
      await server.client.call("removeSandbox", { sandbox: made.id });
      expect(traces(server).runs).toHaveLength(before);
    });
  }

  test("a sandbox starts from one thing", async () => {
    const both = server.client.call("createSandbox", { empty: true, project: server.project });
    await expect(both).rejects.toMatchObject({ code: "invalid_input" });
    await expect(server.client.call("createSandbox", {})).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("an empty workspace that was made ahead", needs("root", "cgroup-v2"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  test("BOX-12: is empty, belongs to user 1000, and knows nothing of the one before it; all of them share one base", async () => {
    const create = () => server.client.call("createSandbox", { empty: true });
    const first = await create();
    await server.sh(first.id, "echo secret > a.txt");
    // A launch that waits for whatever is made next has no way out yet.
    const isOpen = (id: string): boolean => id !== first.id && existsSync(join(server.paths.home, "run", id, "gateway"));
    const ahead = await eventually(
      () => traces(server).runs.filter(isOpen),
      (runs) => runs.length === 1,
    );
    const second = await create();
    expect(ahead).toEqual([second.id]);
    expect((await server.sh(second.id, "pwd; ls -A; id -u; stat -c '%u %a' .; touch b.txt; touch /etc/x || echo closed")).stdout).toBe(
      "/workspace\n1000\n1000 755\nclosed\n",
    );
    for (const { id } of [first, second]) await server.client.call("removeSandbox", { sandbox: id });
    // The base is there although no sandbox has it.
    const third = await create();
    expect((await server.sh(third.id, "ls -A; id -u")).stdout).toBe("1000\n");
    await server.client.call("removeSandbox", { sandbox: third.id });
    await server.client.call("prune", { all: true });
    const fourth = await create();
    expect((await server.sh(fourth.id, "ls -A; id -u")).stdout).toBe("1000\n");
  });
});

describe("an empty workspace of an ordinary user", needs("root"), () => {
  let server: TestServer;
  const uid = 61_234;

  beforeAll(async () => {
    server = await TestServer.start({ uid, config: { spares: false } });
  });

  afterAll(async () => server.remove());

  test("BOX-12: has a read-only system, and says that its user is the server's", async () => {
    const box = await server.client.call("createSandbox", { empty: true });
    expect(box.notes).toEqual([expect.stringContaining("server's own user")]);
    const { stdout } = await server.sh(box.id, `pwd; id -u; ${writing([...PLACES, "/workspace", "/tmp"])}`);
    expect(stdout).toBe(`/workspace\n${uid}\n/workspace\n/tmp\n`);
  });
});
