/** PR of the threat list: what a process inside may not do, each beside the same attack where nothing stops it. */
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { all, attackHost, attackInside, compile, outcomes } from "../support/attacks.ts";
import { givenRanges, idRanges, overlaps } from "../support/id-ranges.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const NOBODY = { uid: 65_534, gid: 65_534 };
const SUBIDS = new URL("../../src/base/host/subids.ts", import.meta.url).href;
const NAMESPACES = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

describe("a process inside", needs("root", "compiler"), () => {
  let server: TestServer;
  let box: string;
  const inside = (...names: readonly string[]) => attackInside(server, box, "attack", ...names);
  const outside = (...names: readonly string[]) => attackHost(join(server.project, "attack"), ...names);

  beforeAll(async () => {
    server = await TestServer.start();
    chmodSync(server.place, 0o755);
    compile(server.project, "attack", "abi", "granted");
    box = (await server.create()).id;
  });
  afterAll(async () => server?.remove());

  test("PR-01, PR-02 and PR-04: is refused new namespaces, dangerous calls and foreign sockets, which the machine grants", async () => {
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
      "open-by-handle",
      "raw",
      "raw6",
      "join-namespace",
      "real-time",
    ];
    const unknownToSomeKernels = ["kexec", "module"];
    expect(await inside(...refused, ...unknownToSomeKernels)).toEqual(all([...refused, ...unknownToSomeKernels], "EPERM"));
    expect(await inside("clone3")).toEqual({ clone3: "ENOSYS" });
    expect(await inside("packet", "vsock", "alg")).toEqual(all(["packet", "vsock", "alg"], "EAFNOSUPPORT"));
    const protocols = ["udplite", "netlink-generic", "netlink-netfilter"];
    expect(await inside(...protocols)).toEqual(all(protocols, "EPROTONOSUPPORT"));
    const granted = ["tcp", "udp", "unix", "netlink-route"];
    expect(await inside(...granted)).toEqual(all(granted, "done"));
    const free = outside(...refused, "clone3", "packet", ...protocols);
    const refusals = ["EPERM", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT"];
    expect(Object.entries(free).filter(([, result]) => refusals.includes(result))).toEqual([]);
  });

  test("is granted what databases, allocators, debuggers and tools ask for, and misses what the kernel lacks with its errors", async () => {
    const asked = ["aio", "memory-policy", "list-mounts", "show-mount", "list-own-socket", "no-randomness", "unix-raw"];
    const lacking = ["x25", "can", "bluetooth", "no-family", "pair-inet", "pair-no-family", "netlink-no-protocol"];
    const free = outcomes(execFileSync(join(server.project, "granted"), [...asked, ...lacking], { encoding: "utf8" }));
    const granted = asked.filter((name) => free[name] !== "ENOSYS");
    expect(free).toMatchObject(all(granted, "done"));
    expect(await attackInside(server, box, "granted", ...granted)).toEqual(all(granted, "done"));
    expect(await attackInside(server, box, "granted", ...lacking)).toEqual({
      ...all(lacking, "EAFNOSUPPORT"),
      "pair-inet": "EOPNOTSUPP",
      "netlink-no-protocol": "EPROTONOSUPPORT",
    });
  });

  test("PR-02: lists sockets of its own network alone", async () => {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    expect(await attackInside(server, box, "granted", `listener=${port}`)).toEqual({ listener: "ENOENT" });
    const free = execFileSync(join(server.project, "granted"), [`listener=${port}`], { encoding: "utf8" });
    expect(outcomes(free)).toEqual({ listener: "done" });
    listener.close();
  });

  test("PR-03: dies at the kernel's other doors, int 0x80 and the x32 numbers", async () => {
    const through = await attackInside(server, box, "abi");
    expect(Object.keys(through).length).toBeGreaterThan(20);
    expect(through).toEqual(all(Object.keys(through), "SIGSYS"));
    const free = outcomes(execFileSync("unshare", ["-m", "-n", join(server.project, "abi")], { encoding: "utf8" }));
    expect(free).toMatchObject({
      "i386:getpid": "done",
      "i386:keyctl": "done",
      "i386:unshare-user": "done",
      "i386:socketcall-packet": "done",
    });
  });

  test("PR-06: reaches neither process 1 nor a helper that works for the API", async () => {
    expect(await inside("ptrace-1", "read-1", "descriptor-of-1")).toEqual(all(["ptrace-1", "read-1", "descriptor-of-1"], "EPERM"));
    expect(await inside("memory-of-1", "root-of-1")).toEqual(all(["memory-of-1", "root-of-1"], "EACCES"));
    const free = outside("ptrace-1", "memory-of-1", "root-of-1", "read-1", "descriptor-of-1");
    expect(Object.entries(free).filter(([, result]) => result === "EPERM" || result === "EACCES")).toEqual([]);
    const { promise: enough, resolve: finish } = Promise.withResolvers<void>();
    const slow = Readable.from(
      (async function* () {
        yield Buffer.from("begun");
        await enough;
      })(),
    );
    const upload = server.client.writeFile(box, "/tmp/slow", slow);
    const found = await eventually(
      () =>
        server.sh(box, 'for p in /proc/[0-9]*; do [ $p != /proc/1 ] && [ "$(cat $p/comm 2>/dev/null)" = cell ] && basename $p; done', {
          user: "root",
        }),
      ({ stdout }) => stdout !== "",
    );
    const helper = found.stdout.trim().split("\n")[0] ?? "";
    const results = await inside(`ptrace=${helper}`, `memory=${helper}`, `root=${helper}`);
    finish();
    await upload;
    expect(results).toEqual({ ptrace: "EPERM", memory: "EACCES", root: "EACCES" });
    const child = spawn("sleep", ["60"]);
    expect(
      outcomes(execFileSync(join(server.project, "attack"), [`memory=${child.pid}`, `root=${child.pid}`], { encoding: "utf8" })),
    ).toEqual({ memory: "done", root: "done" });
    child.kill("SIGKILL");
  });

  test("PR-07: gains nothing from setuid programs and file capabilities, and the host gets no such program", async () => {
    const make =
      "cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; cp /bin/grep /tmp/caps; setcap cap_sys_admin,cap_chown+ep /tmp/caps; cp /usr/bin/id ./suid; chmod 4755 ./suid";
    expect((await server.sh(box, make, { user: "root" })).end?.exitCode).toBe(0);
    const gained = await server.sh(box, "/tmp/id -u; ./suid -u; /tmp/caps CapEff /proc/self/status", { user: "nobody" });
    expect(gained.stdout).toBe("65534\n65534\nCapEff:\t0000000000000000\n");
    const control = join(server.place, "id");
    copyFileSync("/usr/bin/id", control);
    chmodSync(control, 0o4755);
    expect(execFileSync(control, ["-u"], { ...NOBODY, encoding: "utf8" })).toBe("0\n");
    const mounts = readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[4]?.startsWith(server.paths.home) === true && line.includes(" btrfs "));
    for (const mount of mounts) expect(mount.split(" ")[5]).toContain("nosuid");
    expect(() => execFileSync("ls", [server.paths.home], { ...NOBODY, stdio: "pipe" })).toThrow("Permission denied");
  });

  test("PR-08: ends or stops nothing but its own sandbox's processes", async () => {
    const host = spawn("sleep", ["60"]);
    const sibling = await server.create();
    await server.sh(box, "sleep 600", { background: true });
    for (const line of ["kill -STOP 1", "kill -9 1", "kill -STOP -1", "kill -9 -1"]) {
      await server.sh(box, line, { user: "root", timeoutMs: 5_000 });
      expect((await server.sh(box, "echo alive", { timeoutMs: 5_000 })).stdout).toBe("alive\n");
    }
    expect((await server.sh(sibling.id, "echo alive")).stdout).toBe("alive\n");
    expect([host.exitCode, host.signalCode]).toEqual([null, null]);
    host.kill("SIGKILL");
    await server.client.call("removeSandbox", { sandbox: sibling.id });
    const control = "sleep 60 & victim=$!; kill -9 -1; wait $victim; echo $?";
    expect(
      execFileSync("unshare", ["-p", "-f", "--mount-proc", "sh", "-c", control], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }).trim(),
    ).toBe("137");
  });

  test("PR-08: lowers no limit of process 1, and takes only one command from a helper that waits", async () => {
    expect(await inside("limit-1")).toEqual({ "limit-1": "EPERM" });
    expect(outside("limit-1")).toEqual({ "limit-1": "done" });
    // In one command: the helper that waits makes the next one.
    const line =
      'for p in /proc/[0-9]*; do [ $p != /proc/1 ] && [ "$(cat $p/comm 2>/dev/null)" = cell ] && ./attack few-descriptors=$(basename $p); done';
    await eventually(
      () => server.sh(box, line, { user: "root" }),
      ({ stdout }) => stdout === "few-descriptors done\n",
    );
    expect(await server.sh(box, "echo alive")).toMatchObject({ stdout: "", end: { exitCode: 137 } });
    expect((await server.sh(box, "echo alive")).stdout).toBe("alive\n");
  });

  test("PR-08: does not stop the sandbox with a signal whose sender the kernel forgot", async () => {
    expect(await inside("signal-of-nobody")).toEqual({ "signal-of-nobody": "done" });
    expect((await server.sh(box, "sleep 3; echo alive")).stdout).toBe("alive\n");
  });

  test.each([false, true])("PR-09: has the declared filter, capabilities, ids, namespaces and groups (terminal: %s)", async (terminal) => {
    const line = `cat /proc/self/status /proc/self/uid_map /proc/self/gid_map /proc/self/cgroup; for n in ${NAMESPACES.join(" ")}; do readlink /proc/self/ns/$n; done`;
    const stream = await server.client.exec(box, {
      command: ["sh", "-c", line],
      user: "root",
      ...(terminal ? { terminal: { rows: 24, cols: 80 } } : {}),
    });
    let text = "";
    for await (const chunk of stream.output) if (chunk.stream !== "gap") text += chunk.data.toString();
    const field = (name: string): string => new RegExp(`^${name}:\\s+(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
    expect([field("Seccomp"), field("NoNewPrivs"), field("Uid")]).toEqual(["2", "1", "0\t0\t0\t0"]);
    for (const set of ["CapPrm", "CapEff", "CapBnd"]) expect(field(set)).toBe("00000000a80425fb");
    for (const set of ["CapInh", "CapAmb"]) expect(field(set)).toBe("0000000000000000");
    const maps = text.match(/^ +0 +(\d+) +65536\r?$/gm) ?? [];
    expect(maps.length).toBe(2);
    expect(Number(/0 +(\d+)/.exec(maps[0] ?? "")?.[1])).toBeGreaterThanOrEqual(0x70000000);
    for (const name of NAMESPACES) {
      expect(text).toContain(`${name}:[`);
      expect(text).not.toContain(readlinkSync(`/proc/self/ns/${name}`));
    }
    const place = (of: string, controller: string): string =>
      (new RegExp(`^\\d+:[^:]*${controller}[^:]*:(.*?)\\r?$`, "m").exec(of) ?? /^0::(.*?)\r?$/m.exec(of))?.[1] ?? "";
    expect(place(text, "memory"), "inside, paths begin at its own group").toBe("/");
    const { processId } = await server.client.call("inspectSandbox", { sandbox: box });
    // The helper that waits for the next command enters its groups right after it was forked.
    const groups = (): string => {
      const [child] = readFileSync(`/proc/${processId}/task/${processId}/children`, "utf8").split(" ");
      return readFileSync(`/proc/${child}/cgroup`, "utf8");
    };
    const real = await eventually(groups, (shown) => place(shown, "memory").includes(box));
    for (const controller of ["memory", "pids", "freezer"]) expect(place(real, controller)).toContain(box);
  });

  test("MT-07: shares no id with a sibling or with anyone of the machine", async () => {
    const sibling = await server.create();
    const own = await Promise.all([box, sibling.id].map(async (id) => idRanges((await server.sh(id, "cat /proc/self/uid_map")).stdout)));
    const given = ["/etc/subuid", "/etc/subgid", "/etc/passwd"].flatMap((file) => givenRanges(file));
    expect(given.length).toBeGreaterThan(10);
    const [first = [], second = []] = own;
    expect(overlaps(first, second)).toEqual([]);
    for (const range of own) expect(overlaps(range, given)).toEqual([]);
    // The same look notices a map that reaches into the sandbox's by one id.
    const intruder = spawn("unshare", ["-U", "sleep", "60"]);
    const namespace = (pid: number | string): string => readlinkSync(`/proc/${pid}/ns/user`);
    await eventually(
      () => namespace(intruder.pid ?? 0),
      (found) => found !== namespace("self"),
    );
    writeFileSync(`/proc/${intruder.pid}/uid_map`, `0 ${first[0]?.last ?? 0} 10\n`);
    const control = idRanges(readFileSync(`/proc/${intruder.pid}/uid_map`, "utf8"));
    intruder.kill("SIGKILL");
    expect(overlaps(first, control)).toHaveLength(1);
    await server.client.call("removeSandbox", { sandbox: sibling.id });
  });

  test("MT-07: a range that /etc/subuid gives to a user is left out, and is taken where it gives it to no user", () => {
    const start = 0x70000000;
    const look = `import { freeRanges } from ${JSON.stringify(SUBIDS)}; const free = freeRanges(${start}, 65536); console.log([0, 1, 2, 3].map(free).join(" "))`;
    const script = 'mount -t tmpfs none /etc; printf %s "$0" > /etc/subuid; exec "$@"';
    const ranges = (subuid: string): string =>
      execFileSync("unshare", ["-m", "sh", "-c", script, subuid, process.execPath, "--input-type=module-typescript", "-e", look], {
        encoding: "utf8",
      }).trim();
    expect(ranges("")).toBe("true true true true");
    expect(ranges(`someone:${start + 65_536 + 100}:65536\n`)).toBe("true false false true");
  });

  test("PR-10: runs as exactly the asked user or not at all", async () => {
    const ids = async (user: string): Promise<string> => (await server.sh(box, "echo $(id -u):$(id -g)", { user })).stdout.trim();
    expect([await ids("1"), await ids("0:0"), await ids("nobody"), await ids("12345"), await ids("root:1")]).toEqual([
      "1:1",
      "0:0",
      "65534:65534",
      "12345:12345",
      "0:1",
    ]);
    for (const user of [
      "",
      ":",
      "root:",
      ":0",
      "root:x",
      "-1",
      "4294967295",
      "4294967296",
      "2147483648",
      "70000",
      "0x0",
      " 0",
      "root ",
      "no-such-user",
    ]) {
      await expect(server.sh(box, "id", { user }), user).rejects.toSatisfy((error: { code?: string }) =>
        ["invalid_input", "not_found"].includes(error.code ?? ""),
      );
    }
  });

  test("PR-11: takes its environment with it, and the server's stays as it was", async () => {
    const source = join(server.place, "preload.c");
    writeFileSync(
      source,
      '#include <fcntl.h>\n__attribute__((constructor)) static void mark(void) { open("/var/tmp/viv-preloaded", O_CREAT | O_WRONLY, 0600); }\n',
    );
    execFileSync("cc", ["-shared", "-fPIC", "-o", join(server.project, "preload.so"), source]);
    const fresh = await server.create({ env: { LD_PRELOAD: join(server.project, "preload.so"), BASH_ENV: "/x", PATH: "/usr/bin:/bin" } });
    expect((await server.sh(fresh.id, "echo [$LD_PRELOAD$BASH_ENV]; ls /var/tmp/viv-preloaded 2>&1 | grep -c such")).stdout).toBe(
      "[]\n1\n",
    );
    await server.sh(fresh.id, "true", { env: { LD_PRELOAD: join(server.project, "preload.so"), PATH: "/nowhere" } });
    await server.client.readFile(fresh.id, "/etc/passwd").then(({ body }) => body.resume());
    expect((await server.sh(fresh.id, "ls /var/tmp/viv-preloaded")).end?.exitCode).toBe(0);
    expect(existsSync("/var/tmp/viv-preloaded")).toBe(false);
    expect(readFileSync(`/proc/${server.pid}/environ`, "utf8")).not.toContain("LD_PRELOAD");
    await server.client.call("removeSandbox", { sandbox: fresh.id });
  });

  test("PR-14: can't type into its terminal as if a person had", async () => {
    const stream = await server.client.exec(box, {
      command: [join(server.project, "attack"), "type-into-terminal", "type-into-terminal-high-bits"],
      user: "root",
      terminal: { rows: 24, cols: 80 },
    });
    let text = "";
    for await (const chunk of stream.output) if (chunk.stream !== "gap") text += chunk.data.toString();
    expect(outcomes(text.replaceAll("\r", ""))).toEqual({ "type-into-terminal": "EPERM", "type-into-terminal-high-bits": "EPERM" });
    const free = execFileSync("script", ["-qec", `${join(server.project, "attack")} type-into-terminal`, "/dev/null"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(free).toContain("type-into-terminal done");
  });

  test("PR-15: does not hear an abstract socket of the host", async () => {
    const name = `viv-canary-${process.pid}`;
    const listener = createServer().listen(`\0${name}`);
    expect(outcomes(execFileSync(join(server.project, "attack"), [`abstract-socket=${name}`], { encoding: "utf8" }))).toEqual({
      "abstract-socket": "done",
    });
    expect(await inside(`abstract-socket=${name}`)).toEqual({ "abstract-socket": "ECONNREFUSED" });
    listener.close();
  });

  test("PR-16: has no bus, no display and no sound of the host", async () => {
    const folder = `/run/viv-canary-${process.pid}`;
    mkdirSync(join(folder, "pulse"), { recursive: true });
    const display = mkdirSync("/tmp/.X11-unix", { recursive: true, mode: 0o1777 });
    const sockets = { bus: "bus", wayland: "wayland-0", sound: "pulse/native", notify: "notify", agent: "agent" };
    const paths = [...Object.values(sockets).map((name) => join(folder, name)), `/tmp/.X11-unix/X${process.pid}`];
    const listeners = paths.map((path) => createServer().listen(path));
    await Promise.all(listeners.map((listener) => once(listener, "listening")));
    const doors = {
      DBUS_SESSION_BUS_ADDRESS: `unix:path=${folder}/bus`,
      DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${folder}/bus`,
      DISPLAY: `:${process.pid}`,
      WAYLAND_DISPLAY: `${folder}/wayland-0`,
      PULSE_SERVER: `unix:${folder}/pulse/native`,
      XDG_RUNTIME_DIR: folder,
      NOTIFY_SOCKET: `${folder}/notify`,
      SSH_AUTH_SOCK: `${folder}/agent`,
    };
    const line = `for n in ${Object.keys(doors).join(" ")}; do printenv $n; done; for s in ${paths.join(" ")}; do [ -S $s ] && echo $s; done; :`;
    const everything = [...Object.values(doors), ...paths].join("\n");
    expect(execFileSync("sh", ["-c", line], { env: { ...process.env, ...doors }, encoding: "utf8" }).trim()).toBe(everything);
    const fresh = await server.create({ env: doors });
    expect((await server.sh(fresh.id, line, { user: "root" })).stdout).toBe("");
    const rest = "ls -A /run /tmp/.X11-unix 2>/dev/null | grep -v '^lock$' | grep -v :$; systemctl is-system-running; systemd-run true; :";
    expect((await server.sh(fresh.id, rest, { user: "root" })).stdout.trim()).toMatch(/^(offline)?$/);
    expect(execFileSync("sh", ["-c", rest.split(";")[0] ?? ""], { encoding: "utf8" })).toContain(`viv-canary-${process.pid}`);
    const { environmentLeftOut } = await server.client.call("inspectSandbox", { sandbox: fresh.id });
    expect(Object.keys(doors).filter((name) => !environmentLeftOut.includes(name))).toEqual([]);
    for (const listener of listeners) listener.close();
    for (const made of [folder, display ?? folder]) rmSync(made, { recursive: true, force: true });
    await server.client.call("removeSandbox", { sandbox: fresh.id });
  });

  test("PR-17: sees no group but its own, read-only, and can't mount more", async () => {
    expect(await inside("mount-groups")).toEqual({ "mount-groups": "EPERM" });
    const found = await server.sh(
      box,
      "grep cgroup /proc/self/mounts | grep -vc ' ro,'; find /sys -name release_agent | wc -l; find /sys/fs/cgroup -name cgroup.procs -exec sh -c 'echo 0 > {} || echo $?' \\; 2>&1 | grep -vcE '^[12]$|Read-only'",
      { user: "root" },
    );
    expect(found.stdout).toBe("0\n0\n0\n");
    const mountable = readFileSync("/proc/self/mounts", "utf8").includes(" cgroup rw");
    expect(mountable ? outside("mount-groups") : { "mount-groups": "done" }).toEqual({ "mount-groups": "done" });
  });

  test("PR-18: does not outlive its sandbox, however it detaches", async () => {
    const mark = `viv-orphan-${process.pid}`;
    const fresh = await server.create();
    const hide = `(setsid sh -c '(trap "" TERM HUP INT; exec setsid perl -e "\\$SIG{TERM}=q(IGNORE); \\$0=q(${mark}); sleep 600" ) & ' &) ; sleep 0.2`;
    await server.sh(fresh.id, hide);
    const alive = (): string[] => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && readCommand(pid).startsWith(mark));
    expect(await eventually(alive, (pids) => pids.length > 0)).toHaveLength(1);
    const begun = performance.now();
    await server.client.call("stopSandbox", { sandbox: fresh.id });
    expect(alive()).toEqual([]);
    expect(performance.now() - begun).toBeLessThan(6_000);
    await server.client.call("removeSandbox", { sandbox: fresh.id });
  });
});

function readCommand(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it has ended meanwhile
  }
}
