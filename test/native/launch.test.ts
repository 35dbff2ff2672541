import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { CellClient } from "../../src/machine/drivers/native/cell-client.ts";
import { type CellForTests, parts, startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";

const BASE = 0x7ff00000;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

interface Launched {
  readonly volume: string;
  readonly pid: number;
  run(command: readonly string[], user?: string): Promise<string>;
  attack(...names: readonly string[]): Promise<Record<string, string>>;
  stop(): Promise<void>;
}

describe("a launched sandbox", needs("linux", "root", "compiler", "btrfs"), () => {
  let cell: CellForTests;
  let pool: string;
  let project: string;
  let serial = 0;
  const started: Launched[] = [];

  function fieldsFor(name: string, privileges: string, ...mounts: readonly Buffer[]) {
    const at = (suffix: string): string => join(cell.folder, `${name}.${suffix}`);
    for (const folder of [join(pool, name, "upper"), join(pool, name, "work"), at("logs"), at("run")])
      mkdirSync(folder, { recursive: true });
    return {
      sandbox: name,
      mode: "root",
      uid_base: BASE,
      uid_count: 65536,
      hostname: name,
      socket: at("sock"),
      logs: at("logs"),
      run: at("run"),
      privileges,
      tree: [parts("system", "/"), parts("volume", join(pool, name)), parts("mask", join(pool, "mask")), parts("project", project)],
      root: "overlay",
      mount: [
        parts("overlay", "/", "@volume/upper", "@volume/work", "@mask", "@system"),
        parts("bind", "/viv-project", "@project", "rw"),
        ...mounts,
      ],
    };
  }

  async function launch(privileges = "drop", more: Record<string, string | Buffer> = {}): Promise<Launched> {
    const name = `s${++serial}`;
    const fields = { ...fieldsFor(name, privileges), ...more };
    const reply = await cell.ask("launch", fields);
    const client = new CellClient(fields.socket);
    const run: Launched["run"] = async (command, user = "root") => {
      const running = await client.exec({
        id: `c${++serial}`,
        command,
        env: { PATH, HOME: "/tmp" },
        cwd: "/",
        user,
        stdin: false,
        logBytes: 0,
      });
      const output: Buffer[] = [];
      for await (const chunk of running.output) if (chunk.stream !== "gap") output.push(chunk.data);
      return Buffer.concat(output).toString();
    };
    const launched: Launched = {
      volume: join(pool, name),
      pid: Number(reply.get("pid")),
      run,
      attack: async (...names) => outcomes(await run(["/viv-project/attack", ...names])),
      stop: () => client.stop(0),
    };
    started.push(launched);
    return launched;
  }

  function outcomes(text: string): Record<string, string> {
    return Object.fromEntries(
      text
        .trim()
        .split("\n")
        .map((line) => line.split(" ") as [string, string]),
    );
  }

  beforeAll(() => {
    cell = startCell();
    pool = cell.pool();
    project = join(pool, "project");
    for (const folder of [project, join(pool, "mask")]) mkdirSync(folder);
    execFileSync("cc", ["-o", join(project, "attack"), new URL("../support/attack.c", import.meta.url).pathname]);
  });
  afterEach(async () => {
    await Promise.all(started.splice(0).map((sandbox) => sandbox.stop()));
  });
  afterAll(async () => cell?.remove());

  const everywhere = (names: readonly string[], result: string): Record<string, string> =>
    Object.fromEntries(names.map((name) => [name, result]));
  const refused = [
    "unshare-user",
    "unshare-mounts",
    "clone-user",
    "clone-network",
    "io_uring",
    "userfaultfd",
    "bpf",
    "perf",
    "keyctl",
    "add_key",
    "kexec",
    "module",
    "open-by-handle",
    "raw",
    "raw6",
    "mount",
    "umount",
    "open_tree",
    "fsopen",
    "block-device",
    "kvm-device",
    "type-into-terminal",
    "type-into-terminal-high-bits",
    "ptrace-1",
    "read-1",
    "descriptor-of-1",
  ];

  test.each(["drop", "keep"])("refuses its root what only the machine may do (privileges %s)", async (privileges) => {
    const sandbox = await launch(privileges);
    expect(await sandbox.attack(...refused)).toEqual(everywhere(refused, "EPERM"));
    const unreadable = ["memory-of-1", "root-of-1", "core-pattern"];
    expect(await sandbox.attack(...unreadable)).toEqual(everywhere(unreadable, "EACCES"));
    expect(await sandbox.attack("clone3", "netlink-route")).toEqual({ clone3: "ENOSYS", "netlink-route": "done" });
    expect(await sandbox.attack("vsock", "alg", "packet")).toEqual(everywhere(["vsock", "alg", "packet"], "EAFNOSUPPORT"));
    const netlink = ["netlink-generic", "netlink-netfilter"];
    expect(await sandbox.attack(...netlink)).toEqual(everywhere(netlink, "EPROTONOSUPPORT"));
    expect(await sandbox.attack("old-gate", "second-numbers")).toEqual({ "old-gate": "SIGSYS", "second-numbers": "SIGSYS" });
  });

  test("is what refuses: without it the same attacks get through", () => {
    const free = ["clone-user", "keyctl", "raw", "netlink-generic", "fsopen", "open_tree", "unshare-user"];
    const text = execFileSync("unshare", ["-m", join(project, "attack"), ...free], { encoding: "utf8" });
    expect(outcomes(text)).toEqual(everywhere(free, "done"));
  });

  test("does not reach an abstract socket of the host", async () => {
    const name = `viv-canary-${process.pid}`;
    const server = createServer().listen(`\0${name}`);
    const sandbox = await launch();
    expect(outcomes(execFileSync(join(project, "attack"), [`abstract-socket=${name}`], { encoding: "utf8" }))).toEqual({
      "abstract-socket": "done",
    });
    expect(await sandbox.attack(`abstract-socket=${name}`)).toEqual({ "abstract-socket": "ECONNREFUSED" });
    server.close();
  });

  test("sends without a pace: what goes between its programs waits for no timer", async () => {
    const sandbox = await launch();
    expect((await sandbox.run(["/bin/cat", "/proc/sys/net/ipv4/tcp_congestion_control"])).trim()).toBe("reno");
  });

  test("shows only its own processes and nothing of the machine's keys, symbols and serials", async () => {
    const sandbox = await launch();
    expect(
      await sandbox.run([
        "sh",
        "-c",
        "ls -d /proc/[0-9]* | wc -l; cat /proc/keys /proc/kallsyms; ls /sys; ls /sys/firmware /sys/class 2>&1 | grep -vc 'No such'",
      ]),
    ).toMatch(/^[1-5]\ndevices\nempty\n0\n$/);
    expect(await sandbox.run(["sh", "-c", "grep -E 'Seccomp:|NoNewPrivs|CapBnd' /proc/1/status"])).toContain("CapBnd:\t00000000a80425fb");
  });

  test("finds its own group of the new kind where paths begin, read-only, with process 1 outside of it", needs("cgroup-v2"), async () => {
    const mount = / (\S+) cgroup2 /.exec(readFileSync("/proc/self/mounts", "utf8"))?.[1] ?? "";
    const top = join(mount, `viv-launch-test-${process.pid}`);
    const [work, cells] = [join(top, "work"), join(top, "cells")];
    for (const folder of [top, work, cells]) mkdirSync(folder);
    try {
      const sandbox = await launch("drop", { work_cgroup: work, init_cgroup: cells, cgroup_view: parts("", work) });
      const look = "grep ^0: /proc/self/cgroup; grep -c . /sys/fs/cgroup/cgroup.procs; mkdir /sys/fs/cgroup/x 2>&1";
      expect(await sandbox.run(["sh", "-c", look])).toMatch(/^0::\/\n[1-9]\d*\nmkdir: .*: Read-only file system\n$/);
      expect(readFileSync(`/proc/${sandbox.pid}/cgroup`, "utf8")).toMatch(/^0::.*\/cells$/m);
    } finally {
      await Promise.all(started.splice(0).map((sandbox) => sandbox.stop()));
      for (const folder of [work, cells, top]) await vi.waitFor(() => rmdirSync(folder));
    }
  });

  test("keeps owners natural on its disk and lets root inside do root's work", async () => {
    const sandbox = await launch();
    const output = await sandbox.run([
      "sh",
      "-ec",
      "useradd -m visitor; su visitor -c 'id -un; echo mine > ~/note'; mv /usr/share /usr/share2; ls -d /usr/share2; touch /viv-project/new",
    ]);
    expect(output).toBe("visitor\n/usr/share2\n");
    expect(lstatSync(join(sandbox.volume, "upper/etc/passwd")).uid).toBe(0);
    expect(lstatSync(join(sandbox.volume, "upper/home/visitor/note")).uid).toBeGreaterThanOrEqual(1000);
    expect(lstatSync(join(project, "new")).uid).toBe(0);
  });

  test("may destroy its system and leaves the host's as it was", async () => {
    const sandbox = await launch();
    await sandbox.run(["rm", "-rf", "/usr/bin", "/usr/sbin", "/etc"]);
    expect(existsSync("/usr/bin/env") && existsSync("/etc/passwd")).toBe(true);
    await expect(sandbox.run(["/usr/bin/env"], "0")).rejects.toMatchObject({ code: "command_not_found" });
  });

  test("belongs to its own id range and holds no descriptor of the server", async () => {
    const sandbox = await launch();
    expect(readFileSync(`/proc/${sandbox.pid}/status`, "utf8")).toMatch(new RegExp(`^Uid:(\\t${BASE}){4}$`, "m"));
    const held = (): string => execFileSync("ls", ["-l", `/proc/${sandbox.pid}/fd`], { encoding: "utf8" });
    // The channel to the launcher closes after it was told that process 1 is ready.
    await expect.poll(() => held().match(/socket:/g)?.length).toBe(1);
    expect(held()).not.toContain("pipe:");
  });

  test("ends with everything in it when it is told to from outside", async () => {
    const sandbox = await launch();
    const running = sandbox.run(["sleep", "60"]);
    await expect.poll(() => readFileSync(`/proc/${sandbox.pid}/task/${sandbox.pid}/children`, "utf8")).not.toBe("");
    process.kill(sandbox.pid, "SIGTERM");
    await running;
    await expect.poll(() => existsSync(`/proc/${sandbox.pid}`)).toBe(false);
  });

  test.each(["dev", "proc", "sys", "run", "viv-project"])(
    "is not made when /%s is a link, and nothing is left or written",
    async (name) => {
      const id = `s${++serial}`;
      const fields = fieldsFor(id, "drop");
      const outside = join(cell.folder, `outside-${name}`);
      mkdirSync(outside);
      symlinkSync(outside, join(pool, id, "upper", name));
      await expect(cell.ask("launch", fields)).rejects.toThrow();
      expect(existsSync(fields.socket)).toBe(false);
      expect(execFileSync("ls", [outside], { encoding: "utf8" })).toBe("");
    },
  );

  describe("whose disk comes later", () => {
    function split() {
      const { tree, root, mount, ...first } = fieldsFor(`s${++serial}`, "drop");
      return { first: { ...first, disk_later: "1" }, disk: { sandbox: first.sandbox, tree, root, mount } };
    }

    /** The launcher makes the socket before it waits. */
    const isMade = (socket: string) => vi.waitFor(() => expect(existsSync(socket)).toBe(true));

    test("is made as soon as it is told of the disk", async () => {
      const { first, disk } = split();
      const launching = cell.ask("launch", first);
      await isMade(first.socket);
      await cell.ask("launch.disk", disk);
      const reply = await launching;
      expect(Number(reply.get("pid"))).toBeGreaterThan(1);
      await expect(cell.ask("launch.disk", disk)).rejects.toThrow(/waits/);
      await new CellClient(first.socket).stop(0);
    });

    test("leaves nothing when there will be none", async () => {
      const { first, disk } = split();
      const launching = cell.ask("launch", first);
      launching.catch(() => undefined);
      await isMade(first.socket);
      await cell.ask("launch.disk", { sandbox: disk.sandbox, cancel: "1" });
      await expect(launching).rejects.toThrow(/no disk/);
      expect(existsSync(first.socket)).toBe(false);
    });

    test("tells which of its mounts failed", async () => {
      const { first, disk } = split();
      const launching = cell.ask("launch", first);
      launching.catch(() => undefined);
      await isMade(first.socket);
      await cell.ask("launch.disk", { ...disk, mount: [...disk.mount, parts("bind", "/there", "@nobody", "ro")] });
      await expect(launching).rejects.toThrow(/tree/);
      expect(existsSync(first.socket)).toBe(false);
    });

    test("ends when the helper does", async () => {
      const other = startCell();
      const { first } = split();
      const launching = other.ask("launch", first);
      launching.catch(() => undefined);
      await isMade(first.socket);
      await other.remove();
      await vi.waitFor(() => expect(existsSync(first.socket)).toBe(false), { timeout: 5_000 });
    });
  });

  test("says which step failed", async () => {
    const fields = fieldsFor(`s${++serial}`, "drop", parts("bind", "/there", join(cell.folder, "missing"), "ro"));
    await expect(cell.ask("launch", fields)).rejects.toThrow(/missing|not.found|No such/i);
    const unknown = fieldsFor(`s${++serial}`, "drop", parts("bind", "/there", "@nobody", "ro"));
    await expect(cell.ask("launch", unknown)).rejects.toThrow(/tree/);
  });
});
