/** FS of the threat list: no file of the host is read or written from inside or through the file API. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { all, attackHost, attackInside, compile, outcomes, withFiles } from "../support/attacks.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

const RACES = rounds(2_000, 50_000);
/** The kernel's settings and secrets, written and read by the same lines inside and in the control. */
const SETTINGS = [
  "/proc/sys/kernel/core_pattern",
  "/proc/sysrq-trigger",
  "/proc/sys/kernel/modprobe",
  "/proc/sys/vm/drop_caches",
  "/proc/sys/kernel/hostname",
  "/sys/kernel/uevent_helper",
];
const SECRETS = [
  "/proc/kcore",
  "/proc/keys",
  "/proc/kallsyms",
  "/proc/interrupts",
  "/proc/cmdline",
  "/proc/kmsg",
  "/sys/class/dmi/id/product_serial",
  "/sys/firmware/acpi/tables/DSDT",
];
const WRITE_SETTINGS = `for f in ${SETTINGS.join(" ")}; do { echo '|/tmp/x' > $f; } 2>/dev/null && echo written $f; done`;
const READ_SECRETS = `for f in ${SECRETS.join(" ")}; do [ "$(head -c 1 $f 2>/dev/null | wc -c)" = 0 ] || echo read $f; done`;
const LIST_FOLDERS = "ls /sys/firmware /sys/kernel /sys/fs/bpf /sys/class 2>/dev/null | wc -l";
const CANARY = `viv-canary-${process.pid}-${Date.now()}`;

describe("files of the host", needs("root", "compiler"), () => {
  let server: TestServer;
  let box: string;
  let outside: string;
  let exposed: string;
  const inside = (...names: readonly string[]) => attackInside(server, box, "attack", ...names);
  const onHost = (...names: readonly string[]) => attackHost(join(server.project, "attack"), ...names);
  const read = async (path: string): Promise<string> => text((await server.client.readFile(box, path)).body);

  beforeAll(async () => {
    exposed = mkdtempSync(join(tmpdir(), "viv-exposed-"));
    execFileSync("mknod", [join(exposed, "zero"), "c", "1", "5"]);
    server = await TestServer.start({ config: { expose: [exposed] } });
    outside = join(server.place, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "marker"), CANARY);
    compile(server.project, "attack", "swap");
    symlinkSync("/etc/shadow", join(server.project, "shadow"));
    symlinkSync(join(outside, "marker"), join(server.project, "marker"));
    symlinkSync(outside, join(server.project, "folder"));
    box = (await server.create()).id;
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(exposed, { recursive: true, force: true });
  });

  test("FS-01: only processes of the sandbox exist in /proc, and none leads to the host", async () => {
    const host = spawn("perl", ["-e", `$0="${CANARY}"; sleep 60`], { cwd: outside });
    const look = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q "^${CANARY}" && echo found $p; done; cat /proc/[0-9]*/root${outside}/marker /proc/[0-9]*/cwd/marker /proc/[0-9]*/fd/*/marker 2>/dev/null; true`;
    await eventually(
      () => execFileSync("sh", ["-c", look], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
      (control) => control.includes("found") && control.includes(CANARY),
    );
    expect((await server.sh(box, look, { user: "root" })).stdout).toBe("");
    host.kill("SIGKILL");
  });

  test("FS-02: a command does not start in a folder that a descriptor of process 1 names", async () => {
    const places = [
      ...Array.from({ length: 18 }, (_, index) => `/proc/self/fd/${index + 3}`),
      "/proc/1/cwd",
      "/proc/1/root",
      "/proc/1/fd/5",
      "/proc/self/root/proc/1/root",
    ];
    for (const cwd of places) {
      await expect(server.sh(box, `cat .${outside}/marker ../../../../..${outside}/marker`, { cwd, user: "root" }), cwd).rejects.toSatisfy(
        (error: { code?: string }) => !["internal", "cell_failed"].includes(error.code ?? ""),
      );
    }
    const climb = await server.sh(box, `cat .${outside}/marker ../../../../../../..${outside}/marker`, {
      cwd: "/proc/self/root",
      user: "root",
    });
    expect(climb.stdout).toBe("");
    expect(execFileSync("sh", ["-c", `exec 3<${outside}; cd /proc/self/fd/3; cat marker`], { encoding: "utf8" })).toBe(CANARY);
  });

  test("FS-03: a link to a file of the host leads to the sandbox's own, or nowhere", async () => {
    expect(readFileSync(join(server.project, "marker"), "utf8")).toBe(CANARY);
    await expect(read("marker")).rejects.toMatchObject({ code: "file_not_found" });
    await expect(read("folder/marker")).rejects.toMatchObject({ code: "file_not_found" });
    expect(await read("shadow")).not.toMatch(/^[^:]*:\$/m);
    for (const path of [
      `/proc/1/root${outside}/marker`,
      `/proc/self/root${outside}/marker`,
      `/proc/self/cwd/${outside}/marker`,
      `../../../../..${outside}/marker`,
      `/dev/fd/3${outside}/marker`,
    ]) {
      await expect(read(path), path).rejects.toSatisfy((error: { code?: string }) =>
        ["file_not_found", "denied", "invalid_input"].includes(error.code ?? ""),
      );
    }
  });

  test(
    "FS-04: no byte gets out while a folder is swapped for a link under the file API",
    async () => {
      const target = join(server.place, "target");
      mkdirSync(target);
      await server.sh(box, `mkdir -p race/real; ln -s ${target} race/link; mkdir -p ${target}`);
      const swap = await server.client.call("runCommand", {
        sandbox: box,
        command: [join(server.project, "swap"), "race/real", "race/link"],
        background: true,
      });
      const results = { written: 0, refused: 0 };
      let next = 0;
      const upload = async (): Promise<void> => {
        // One name for each of many tries: what counts is where it lands.
        for (let index = next++; index < RACES; index = next++)
          await server.client.writeFile(box, `race/real/f${index % 200}`, Readable.from([Buffer.from(CANARY)])).then(
            () => (results.written += 1),
            () => (results.refused += 1),
          );
      };
      await Promise.all(Array.from({ length: 16 }, upload));
      expect(results.written).toBeGreaterThan(RACES / 4);
      expect(results.written + results.refused).toBe(RACES);
      const landed = await server.sh(box, `ls ${target} | wc -l; ls race/real/ race/link/ | wc -l`);
      expect(Number(landed.stdout.split("\n")[0]), "the race is won inside, where it does no harm").toBeGreaterThan(0);
      expect(readdirSync(target)).toEqual([]);
      await server.client.call("killCommand", { sandbox: box, command: swap.id, signal: "KILL" });
    },
    RACES * 60,
  );

  test("FS-04: the same race is lost by who writes from the host", async () => {
    const place = mkdtempSync(join(tmpdir(), "viv-race-"));
    for (const name of ["real", "target"]) mkdirSync(join(place, name));
    symlinkSync(join(place, "target"), join(place, "link"));
    const swap = spawn(join(server.project, "swap"), [join(place, "real"), join(place, "link")], { stdio: ["ignore", "pipe", "ignore"] });
    await once(swap.stdout, "data");
    let index = 0;
    const landed = await eventually(
      () => (writeFileSync(join(place, "real", `f${index++}`), "x"), readdirSync(join(place, "target"))),
      (names) => names.length > 0,
    );
    expect(landed.length).toBeGreaterThan(0);
    swap.kill("SIGKILL");
    await once(swap, "exit");
    rmSync(place, { recursive: true });
  });

  test("FS-06 and FS-07: mounts and device nodes are refused, and a node that is there already can't be opened", async () => {
    const names = ["mount", "umount", "open_tree", "fsopen", "pivot_root", "block-device", "kvm-device", "network-device", "fuse-device"];
    expect(await inside(...names)).toEqual(all(names, "EPERM"));
    expect(onHost("mount", "fsopen", "block-device", "kvm-device", "network-device", "fuse-device")).toEqual(
      all(["mount", "fsopen", "block-device", "kvm-device", "network-device", "fuse-device"], "done"),
    );
    expect(outcomes(execFileSync(join(server.project, "attack"), [`open-device=${join(exposed, "zero")}`], { encoding: "utf8" }))).toEqual({
      "open-device": "done",
    });
    expect(await inside(`open-device=${join(exposed, "zero")}`)).toEqual({ "open-device": "EACCES" });
  });

  test("FS-08 and FS-09: the kernel's settings can't be written, and its secrets are empty or absent", async () => {
    const before = readFileSync("/proc/sys/kernel/core_pattern", "utf8");
    const names = ["core-pattern", "sysrq", "modprobe", "uevent-helper"];
    const refused = await inside(...names);
    expect(Object.entries(refused).filter(([, result]) => !["EACCES", "EROFS", "EPERM", "ENOENT"].includes(result))).toEqual([]);
    for (const line of [WRITE_SETTINGS, READ_SECRETS]) expect((await server.sh(box, line, { user: "root" })).stdout, line).toBe("");
    expect((await server.sh(box, LIST_FOLDERS, { user: "root" })).stdout).toBe("0\n");
    expect(readFileSync("/proc/sys/kernel/core_pattern", "utf8")).toBe(before);
  });

  test("FS-08 and FS-09: the same lines write and read all of them where they lie open", () => {
    const names = ["core-pattern", "sysrq", "modprobe", "uevent-helper"];
    const program = `${join(server.project, "attack")} ${names.join(" ")}`;
    const free = withFiles([...SETTINGS, ...SECRETS], CANARY, `${program}; ${WRITE_SETTINGS}; ${READ_SECRETS}; ${LIST_FOLDERS}`);
    expect(free.trim().split("\n")).toEqual([
      ...names.map((name) => `${name} done`),
      ...SETTINGS.map((path) => `written ${path}`),
      ...SECRETS.map((path) => `read ${path}`),
      "8",
    ]);
    // On the machine itself nothing but the opening is tried.
    expect(onHost("core-pattern")).toEqual({ "core-pattern": "done" });
    for (const path of ["/proc/kallsyms", "/proc/interrupts", "/proc/keys", "/proc/cmdline"])
      expect(readFileSync(path, "utf8").length, path).toBeGreaterThan(10);
  });

  test("FS-16: a capability that root inside gives a file is worth nothing outside, where the host's own is", async () => {
    const line = "cp /bin/grep /opt/caps; setcap cap_sys_admin+ep /opt/caps";
    expect((await server.sh(box, line, { user: "root" })).end?.exitCode).toBe(0);
    const own = join(server.place, "caps");
    execFileSync("sh", ["-c", 'cp /bin/grep "$0"; setcap cap_sys_admin+ep "$0"', own]);
    const made = execFileSync("find", [join(server.paths.home, "pool/volumes", box), "-name", "caps"], { encoding: "utf8" }).trim();
    const run = (path: string): string =>
      execFileSync("sh", ["-c", 'exec 3<"$0"; exec setpriv --reuid 65534 --clear-groups /proc/self/fd/3 CapEff /proc/self/status', path], {
        encoding: "utf8",
      });
    expect(run(own)).toBe("CapEff:\t0000000000200000\n");
    expect(run(made)).toBe("CapEff:\t0000000000000000\n");
    expect((await server.sh(box, "/opt/caps CapEff /proc/self/status", { user: "nobody", cwd: "/" })).stdout).toBe(
      "CapEff:\t0000000000000000\n",
    );
  });

  test("no btrfs subvolume is made inside, which snapshots and forks would leave out", async () => {
    expect(await inside("subvolume", "snapshot")).toEqual(all(["subvolume", "snapshot"], "ENOTTY"));
    const pool = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "))
      .find(([, target, type]) => type === "btrfs" && target?.startsWith(server.paths.home) === true)?.[1];
    if (pool === undefined) return;
    const folder = mkdtempSync(join(pool, "control-"));
    expect(outcomes(execFileSync(join(server.project, "attack"), ["subvolume"], { cwd: folder, encoding: "utf8" }))).toEqual({
      subvolume: "done",
    });
    rmSync(folder, { recursive: true });
  });

  test("FS-18: no socket of the host is there to connect to", async () => {
    const places = [join(server.project, "host.sock"), join("/run", `${CANARY}.sock`), join("/var/tmp", `${CANARY}.sock`)];
    const listeners = places.map((path) => createServer((socket) => socket.end()).listen(path));
    await Promise.all(listeners.map((each) => once(each, "listening")));
    for (const path of places) await once(connect(path), "connect");
    const fresh = await server.create();
    const found = await server.sh(
      fresh.id,
      "find / -xdev -type s -not -path '/proc/*' 2>/dev/null; find /run /tmp /var /dev /home /root . -type s 2>/dev/null; ls /run/docker.sock /run/containerd /run/dbus /var/run/docker.sock 2>/dev/null",
      { user: "root", timeoutMs: 20_000 },
    );
    expect(found.stdout).toBe("");
    for (const path of places) expect(spawnSync("ls", [path]).status).toBe(0);
    for (const each of listeners) each.close();
    await server.client.call("removeSandbox", { sandbox: fresh.id });
  });
});

describe.each(["btrfs", "plain"])("files that can't be removed, on %s", (storage) => {
  test(
    "FS-16: flags, lists of rights, capabilities and odd owners do not keep a sandbox from being removed",
    needs("root", ...(storage === "btrfs" ? (["btrfs"] as const) : [])),
    async () => {
      const server = await TestServer.start({ config: { spares: false, ...(storage === "plain" ? { storage } : {}) } });
      const fresh = await server.create();
      const line =
        "mkdir -p odd/deep; cp /bin/grep odd/caps; setcap cap_sys_admin+ep odd/caps; chattr +i odd/caps; setfacl -m u:1:---,m::--- odd/deep; setfattr -n user.x -v y odd/deep; chown 65534:1 odd; chmod 0 odd; chmod 07777 odd/deep; setfattr -n trusted.overlay.opaque -v y odd/deep";
      await server.sh(fresh.id, line, { user: "root" });
      expect((await server.sh(fresh.id, "getcap odd/caps; getfacl -p odd/deep", { user: "root" })).stdout).toMatch(
        /cap_sys_admin=ep[^]*user:daemon:---/,
      );
      const forge = await server.sh(fresh.id, "setfattr -n trusted.overlay.redirect -v /etc odd/deep", { user: "root" });
      expect(forge.end?.exitCode).not.toBe(0);
      // The flag that a sandbox is refused is set from outside, as if it had found a way.
      const files = execFileSync("find", [server.paths.home, "-path", `*${fresh.id}*/odd/*`], { encoding: "utf8" })
        .trim()
        .split("\n");
      expect(files.length).toBeGreaterThanOrEqual(2);
      for (const path of files) execFileSync("chattr", ["+i", path]);
      expect(spawnSync("rm", ["-rf", dirname(files[0] ?? "")], { encoding: "utf8" }).stderr).toContain("Operation not permitted");
      await server.client.call("removeSandbox", { sandbox: fresh.id });
      await expect(server.client.call("inspectSandbox", { sandbox: fresh.id })).rejects.toMatchObject({ code: "not_found" });
      const volumes = join(server.paths.home, storage === "plain" ? "volumes/volumes" : "pool/volumes");
      await eventually(
        () => readdirSync(volumes),
        (names) => names.length === 0,
      );
      await server.remove();
    },
  );
});
