import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

const sha = (data: Buffer): string => createHash("sha256").update(data).digest("hex");
const SIGKILL = 9;
const SIGTERM = 15;

describe("commands of a sandbox", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  beforeAll(async () => {
    cell = await new CellProcess().start();
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  test("give standard output, standard error and the exit code", async () => {
    const { stdout, stderr, exit } = await cell.collect(["sh", "-c", "echo out; echo err >&2; exit 7"]);
    expect({ stdout, stderr, code: exit.code, signal: exit.signal, bytes: exit.outputBytes }).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      code: 7,
      signal: null,
      bytes: 8,
    });
  });

  test("report the signal that ended them", async () => {
    const { exit } = await cell.collect(["sh", "-c", "kill -SEGV $$"]);
    expect(exit).toMatchObject({ code: null, signal: 11, timedOut: false });
  });

  test("get exactly the environment, folder and user asked for, and the account's own variables", async () => {
    const { stdout } = await cell.collect(["sh", "-c", "/usr/bin/env | sort; pwd; id -u; id -g"], {
      env: { ONLY: "this", HOME: "/mine" },
      cwd: "/tmp",
      user: "nobody",
    });
    const lines = stdout.split("\n").filter((line) => !/^(PWD|SHLVL|_|OLDPWD|SHELL)=/.test(line));
    expect(lines).toEqual(["HOME=/mine", "LOGNAME=nobody", "ONLY=this", "USER=nobody", "/tmp", "65534", "65534", ""]);
  });

  test("hold three descriptors, no privileges to gain, and the seccomp filter", async () => {
    const { stdout } = await cell.collect(
      ["sh", "-c", "ls /proc/self/fd | wc -l; grep -E 'NoNewPrivs|Seccomp:|CapEff' /proc/self/status"],
      { user: "nobody" },
    );
    expect(stdout.replaceAll(/\s+/g, " ")).toBe("4 CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 ");
  });

  test.each([
    [["no-such-program"], {}, "command_not_found"],
    [["/no/such/program"], {}, "command_not_found"],
    [["/etc/passwd"], {}, "command_not_runnable"],
    [["true"], { cwd: "/no/such/folder" }, "file_not_found"],
    [["true"], { cwd: "/etc/passwd" }, "invalid_input"],
    [["true"], { user: "no-such-user" }, "invalid_input"],
    [["true"], { user: "4294967295" }, "invalid_input"],
    [["true"], { user: "root:no-such-group" }, "invalid_input"],
    [["true"], { user: "" }, "invalid_input"],
  ])("that cannot run say why: %j %j", async (command, changes, code) => {
    await expect(cell.client.exec(cell.request(command, changes))).rejects.toMatchObject({ code });
  });

  test("run as a user named by number, with or without a group", async () => {
    expect((await cell.collect(["id", "-u"], { user: "1" })).stdout).toBe("1\n");
    expect((await cell.collect(["id", "-G"], { user: "4321" })).stdout).toBe("4321\n");
    expect((await cell.collect(["id", "-g"], { user: "1:7" })).stdout).toBe("7\n");
  });

  test("bring 50 MB of output whole and in order", async () => {
    const running = await cell.client.exec(cell.request(["sh", "-c", "seq 1 7000000 | head -c 50000000"]));
    const hash = createHash("sha256");
    for await (const chunk of running.output) if (chunk.stream === "stdout") hash.update(chunk.data);
    expect(await running.exit).toMatchObject({ code: 0, outputBytes: 50_000_000 });
    const expected = createHash("sha256");
    let left = 50_000_000;
    for (let number = 1; left > 0;) {
      let text = "";
      for (let many = 0; many < 10_000; many++) text += `${number++}\n`;
      const part = Buffer.from(text).subarray(0, left);
      left -= part.length;
      expected.update(part);
    }
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
  });

  test("take any bytes on standard input and end with it", async () => {
    const data = randomBytes(5_000_000);
    const running = await cell.client.exec(cell.request(["cat"], { stdin: true }));
    const sending = running.write(data).then(() => running.endInput());
    const parts: Buffer[] = [];
    for await (const chunk of running.output) if (chunk.stream === "stdout") parts.push(chunk.data);
    await sending;
    expect(sha(Buffer.concat(parts))).toBe(sha(data));
    expect((await running.exit).code).toBe(0);
  });

  test("that do not read their input end all the same, their end and output known", async () => {
    for (let round = 0; round < 20; round++) {
      const running = await cell.client.exec(cell.request(["sh", "-c", "head -c 300000 /dev/zero; exit 6"], { stdin: true }));
      const sending = running.write(Buffer.alloc(2_000_000));
      let bytes = 0;
      for await (const chunk of running.output) if (chunk.stream === "stdout") bytes += chunk.data.length;
      expect({ bytes, code: (await running.exit).code }).toEqual({ bytes: 300_000, code: 6 });
      await sending;
    }
  });

  test("past their time are ended with their group, and by force if they resist", async () => {
    const polite = await cell.collect(["sleep", "60"], { timeoutMs: 50 });
    expect(polite.exit).toMatchObject({ signal: SIGTERM, timedOut: true });
    const stubborn = await cell.collect(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], { timeoutMs: 500 });
    expect(stubborn.exit).toMatchObject({ signal: SIGKILL, timedOut: true });
    expect(stubborn.exit.wallMs).toBeGreaterThanOrEqual(2000);
  });

  test("with a terminal know its size and its changes", async () => {
    const script = "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done";
    const running = await cell.client.exec(cell.request(["sh", "-c", script], { terminal: { rows: 33, cols: 99 }, stdin: true }));
    let text = "";
    for await (const chunk of running.output) {
      if (chunk.stream !== "stdout") continue;
      text += chunk.data.toString();
      if (text.includes("ready")) running.resize(44, 111);
    }
    expect(text.replaceAll("\r", "")).toBe("33 99\nready\n44 111\n");
    expect((await running.exit).code).toBe(0);
  });

  test("with a terminal own it, and hear the keys for interrupt and end", async () => {
    const own = await cell.collect(["sh", "-c", "tty; stat -c %u $(tty); : < /dev/tty && echo mine"], {
      terminal: { rows: 9, cols: 9 },
      user: "nobody",
    });
    expect(own.stdout.replaceAll("\r", "")).toMatch(/^\/dev\/pts\/\d+\n65534\nmine\n$/);
    const running = await cell.client.exec(cell.request(["cat"], { terminal: { rows: 9, cols: 9 }, stdin: true }));
    running.endInput();
    expect((await running.exit).code).toBe(0);
    const interrupted = await cell.client.exec(
      cell.request(["sh", "-c", "echo ready; exec sleep 60"], { terminal: { rows: 9, cols: 9 }, stdin: true }),
    );
    for await (const _ of interrupted.output) await interrupted.write(Buffer.from("\x03"));
    expect((await interrupted.exit).signal).toBe(2);
  });

  test("can be 200 at once", async () => {
    const all = await Promise.all(
      Array.from({ length: 200 }, (_, number) => cell.collect(["sh", "-c", `echo ${number}; exit ${number % 3}`])),
    );
    expect(all.map(({ stdout, exit }) => `${stdout.trim()} ${exit.code}`)).toEqual(all.map((_, number) => `${number} ${number % 3}`));
  });

  test("wait while who started them does not read, and go on when it does", async () => {
    const running = await cell.client.exec(cell.request(["yes"]));
    const cpu = (): string =>
      readFileSync(`/proc/${hostPid(cell, running.pid)}/stat`, "utf8")
        .split(" ")
        .slice(13, 15)
        .join(" ");
    await vi.waitFor(async () => {
      const before = cpu();
      await new Promise((resolve) => setTimeout(resolve, 300)); // the time over which it must stand still
      expect(cpu()).toBe(before);
    }, 10_000);
    let bytes = 0;
    for await (const chunk of running.output) {
      if (chunk.stream === "gap") throw new Error("a gap on the connection that started it");
      bytes += chunk.data.length;
      if (bytes > 5_000_000) running.signal(SIGKILL);
    }
    const exit = await running.exit;
    expect(exit.signal).toBe(SIGKILL);
    expect(exit.outputBytes).toBe(bytes);
  });

  test("end when their process ends, although a background child holds the pipe", async () => {
    const { stdout, exit } = await cell.collect(["sh", "-c", "sleep 30 & echo done"]);
    expect(stdout).toBe("done\n");
    expect(exit.code).toBe(0);
    expect(exit.wallMs).toBeLessThan(5000);
  });

  test("are listed and can be signalled by id", async () => {
    const request = cell.request(["sleep", "61"]);
    const running = await cell.client.exec(request);
    expect((await cell.client.list()).find(({ id }) => id === request.id)).toMatchObject({
      pid: running.pid,
      arguments: ["sleep", "61"],
      user: "root",
      running: true,
    });
    expect(await cell.client.kill(request.id, SIGTERM)).toBe(true);
    expect((await running.exit).signal).toBe(SIGTERM);
    expect(await cell.client.kill("nothing", SIGTERM)).toBe(false);
    await expect(cell.client.exec({ ...request, command: ["true"] })).rejects.toMatchObject({ code: "exists" }); // its log is there
  });

  test("can be attached to: a slow listener gets a gap and the command does not wait", async () => {
    const request = cell.request(["sh", "-c", "read _; head -c 30000000 /dev/zero; echo end"], { stdin: true });
    const running = await cell.client.exec(request);
    const attached = await cell.client.attach(request.id, true);
    if (attached === undefined) throw new Error("it runs");
    await attached.write(Buffer.from("go\n"));
    let bytes = 0;
    for await (const chunk of running.output) if (chunk.stream !== "gap") bytes += chunk.data.length;
    expect(bytes).toBe(30_000_004);
    let heard = 0;
    let missed = 0;
    for await (const chunk of attached.output) {
      if (chunk.stream === "gap") missed += chunk.bytes;
      else heard += chunk.data.length;
    }
    expect(missed).toBeGreaterThan(0);
    expect(heard + missed).toBe(bytes);
    expect((await attached.exit).code).toBe(0);
    expect(await cell.client.attach(request.id, false)).toBeUndefined();
  });

  test("are out of reach of what breaks the protocol", async () => {
    const socket = connect(cell.socket);
    socket.on("error", () => socket.destroy());
    socket.write(randomBytes(4096));
    await new Promise((resolve) => socket.on("close", resolve).resume());
    expect(await cell.client.ping()).toMatchObject({ version: 1 });
  });

  test("may not stop process 1 by a signal", async () => {
    await cell.collect(["sh", "-c", "kill -TERM 1; kill -KILL 1; kill -STOP 1; kill -CHLD 1"]);
    expect((await cell.collect(["echo", "alive"])).stdout).toBe("alive\n");
  });
});

/** The pid that the host knows a process of the sandbox by. */
function hostPid(cell: CellProcess, pid: number): number {
  const first = cell.firstPid;
  const children = readFileSync(`/proc/${first}/task/${first}/children`, "utf8").trim().split(" ");
  const found = children.find((child) => new RegExp(`^NSpid:.*\\t${pid}$`, "m").test(readFileSync(`/proc/${child}/status`, "utf8")));
  if (found === undefined) throw new Error(`no process ${pid}`);
  return Number(found);
}
