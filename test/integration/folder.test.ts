import { execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileChange } from "../../src/schema/files.ts";
import { newId } from "../../src/schema/ids.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { diffCopies } from "../../src/volumes/folder/diff.ts";
import { FolderVolumes } from "../../src/volumes/folder/volumes.ts";
import { FolderDriver } from "../../src/drivers/folder/folder.ts";
import { type Box, execRequest, hear, makeUnwalled, type Unwalled, USER } from "../support/unwalled.ts";

const FILES = { "a.txt": "one\ntwo\n", "src/main.js": "console.log(1);\n", "node_modules/dep/index.js": "module.exports = 1;\n" };
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.startsWith("Z") !== true;
  } catch {
    return false;
  }
};
async function gone(pid: number): Promise<void> {
  await expect.poll(() => alive(pid), { timeout: 5_000, interval: 10 }).toBe(false);
}

let unwalled: Unwalled;
let box: Box;
const run = async (line: string, more: Parameters<typeof execRequest>[2] = {}) => hear(await box.walls.exec(execRequest(unwalled.project, line, more)));

beforeAll(async () => {
  unwalled = await makeUnwalled(FILES);
  box = await unwalled.create();
});
afterAll(async () => unwalled?.remove());

describe("DRV-4 the unwalled way", () => {
  test("says of itself that it has no walls and holds no limits", async () => {
    expect(unwalled.driver.capabilities).toMatchObject({ walled: false, pause: false, limits: "none" });
    expect(box.base.report.notes[0]).toContain("UNWALLED");
    expect(await unwalled.driver.masked()).toEqual([]);
    await expect(box.walls.freeze()).rejects.toMatchObject({ code: "unsupported" });
  });

  test("a copy keeps links, modes and times, leaves special files out, and is the project's whole", async () => {
    const own = await makeUnwalled(FILES);
    try {
      symlinkSync("a.txt", join(own.project, "link"));
      symlinkSync("/nowhere", join(own.project, "dangling"));
      execFileSync("mkfifo", [join(own.project, "pipe")]);
      chmodSync(join(own.project, "src/main.js"), 0o555);
      utimesSync(join(own.project, "a.txt"), 1_000_000, 1_000_000.25);
      if (process.platform === "linux") execFileSync("sh", ["-c", "echo x > \"$(printf 'b\\377d')\""], { cwd: own.project });
      const made = await own.create();
      expect(readlinkSync(join(made.copy, "link"))).toBe("a.txt");
      expect(readlinkSync(join(made.copy, "dangling"))).toBe("/nowhere");
      expect(existsSync(join(made.copy, "pipe"))).toBe(false);
      expect(statSync(join(made.copy, "src/main.js")).mode & 0o777).toBe(0o555);
      expect(statSync(join(made.copy, "a.txt")).mtimeMs).toBeCloseTo(1_000_000_250, 0);
      expect(readdirSync(made.copy, { encoding: "latin1" }).length).toBe(readdirSync(own.project).length - 1);
      expect(made.base.report).toMatchObject({ files: process.platform === "linux" ? 4 : 3 });
      expect(made.base.report.notes.join("\n")).toContain("1 sockets, pipes or devices");
    } finally {
      await own.remove();
    }
  });

  test("20,000 files are copied in reasonable time", async () => {
    const own = await makeUnwalled(FILES);
    try {
      for (let folder = 0; folder < 400; folder += 1) for (let file = 0; file < 50; file += 1) own.put(`node_modules/p${folder}/f${file}.js`, "x".repeat(500));
      const began = performance.now();
      const made = await own.create();
      expect(made.base.report.files).toBe(20_003);
      expect(readdirSync(join(made.copy, "node_modules/p399"))).toHaveLength(50);
      expect(performance.now() - began).toBeLessThan(25_000);
    } finally {
      await own.remove();
    }
  }, 60_000);
});

describe("commands of an unwalled sandbox", () => {
  test("run in the copy and leave the real project alone", async () => {
    const { stdout, exit } = await run('pwd; echo "$VIV_PROJECT"; echo more >> a.txt; cat a.txt', { cwd: unwalled.project });
    expect(stdout).toBe(`${box.copy}\n${box.copy}\none\ntwo\nmore\n`);
    expect(exit).toMatchObject({ code: 0, signal: null, timedOut: false, outputBytes: stdout.length });
    expect(readFileSync(join(unwalled.project, "a.txt"), "utf8")).toBe("one\ntwo\n");
    expect((await run("pwd", { cwd: join(unwalled.project, "src") })).stdout).toBe(`${join(box.copy, "src")}\n`);
  });

  test("get exactly the given environment, with paths of the project as paths of the copy", async () => {
    const { stdout } = await run("env", { env: { PATH: `${unwalled.project}/bin:/usr/bin:/bin`, GREETING: "http://hello" } });
    const names = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("_=") && !line.startsWith("SHLVL=") && !line.startsWith("OLDPWD="));
    expect(names.toSorted()).toEqual(["GREETING=http://hello", `PATH=${box.copy}/bin:/usr/bin:/bin`, `PWD=${box.copy}`, `VIV_PROJECT=${box.copy}`]);
  });

  test("tell their exit code, their signal, and both streams", async () => {
    expect((await run("echo out; echo err >&2; exit 7")).exit.code).toBe(7);
    expect(await run("echo out; echo err >&2")).toMatchObject({ stdout: "out\n", stderr: "err\n" });
    expect((await run("kill -9 $$")).exit).toMatchObject({ code: null, signal: 9 });
  });

  test("read what is written to them until it ends", async () => {
    const running = await box.walls.exec(execRequest(unwalled.project, "cat", { stdin: true }));
    const heard = hear(running);
    const large = Buffer.alloc(1_000_000, "z");
    await running.write(large);
    running.endInput();
    expect((await heard).stdout.length).toBe(large.length);
    expect((await run("cat; echo none")).stdout).toBe("none\n");
  });

  test("that do not exist, can't be run, or have no folder are refused by name", async () => {
    await expect(run("", { command: ["no-such-program"] })).rejects.toMatchObject({ code: "command_not_found" });
    await expect(run("", { command: [join(box.copy, "a.txt")] })).rejects.toMatchObject({ code: "command_not_runnable" });
    await expect(run("true", { cwd: join(unwalled.project, "nowhere") })).rejects.toMatchObject({ code: "file_not_found" });
    await expect(run("true", { user: "12345" })).rejects.toMatchObject({ code: "unsupported" });
    await expect(run("true", { terminal: { rows: 24, cols: 80 } })).rejects.toMatchObject({ code: "unsupported" });
  });

  test("are ended at their time limit with everything they started, politely first", async () => {
    const polite = await run("trap 'echo bye; exit 3' TERM; sleep 100 & wait", { timeoutMs: 200 });
    expect(polite).toMatchObject({ stdout: "bye\n", exit: { timedOut: true, code: 3 } });
    const stubborn = await run("trap '' TERM; sleep 100 & echo $!; while :; do sleep 1; done", { timeoutMs: 200 });
    expect(stubborn.exit).toMatchObject({ timedOut: true, signal: 9 });
    await gone(Number(stubborn.stdout));
  });

  test("end although a background child holds their output open, and stop() ends that child", async () => {
    const own = await makeUnwalled(FILES);
    try {
      const made = await own.create();
      const { stdout, exit } = await hear(await made.walls.exec(execRequest(own.project, "sleep 100 & echo $!")));
      expect(exit.code).toBe(0);
      expect(alive(Number(stdout))).toBe(true);
      await made.walls.stop(0);
      await gone(Number(stdout));
      await expect(made.walls.exec(execRequest(own.project, "true"))).rejects.toMatchObject({ code: "not_running" });
    } finally {
      await own.remove();
    }
  });

  test("wait while nobody reads their output, and none of it is lost", async () => {
    const running = await box.walls.exec(execRequest(unwalled.project, "head -c 3000000 /dev/zero; touch finished"));
    await expect.poll(() => lstatSync(join(unwalled.home, "folders/commands", box.id)).isDirectory()).toBe(true);
    expect(existsSync(join(box.copy, "finished"))).toBe(false);
    const { stdout, exit } = await hear(running);
    expect(stdout.length).toBe(3_000_000);
    expect(exit.outputBytes).toBe(3_000_000);
    expect(existsSync(join(box.copy, "finished"))).toBe(true);
  });

  test("can be attached to, signalled, and left alone", async () => {
    const request = execRequest(unwalled.project, "echo early; read line; echo late $line", { stdin: true });
    const running = await box.walls.exec(request);
    const first = running.output[Symbol.asyncIterator]();
    expect((await first.next()).value).toMatchObject({ data: Buffer.from("early\n") });
    running.detach();
    expect(await box.walls.running()).toContain(request.id);
    const attached = await box.walls.attach(request.id, true);
    expect(attached?.offset).toBe(6);
    await attached?.write(Buffer.from("hello\n"));
    expect(attached === undefined ? undefined : (await hear(attached)).stdout).toBe("late hello\n");
    expect(await box.walls.attach(request.id, false)).toBeUndefined();
    expect(await box.walls.running()).not.toContain(request.id);
  });

  test("leave a log with their output and their end", async () => {
    const request = execRequest(unwalled.project, "echo one; echo two >&2; exit 5");
    await hear(await box.walls.exec(request));
    const log = await unwalled.driver.log(box.id, request.id);
    expect(log.chunks.map((chunk) => (chunk.stream === "gap" ? "" : `${chunk.stream} ${chunk.data.toString()}`)).toSorted()).toEqual(["stderr two\n", "stdout one\n"]);
    expect(log).toMatchObject({ offset: 0, exit: { code: 5, outputBytes: 8, droppedBytes: 0 } });
    expect(await unwalled.driver.log(box.id, newId("command"))).toEqual({ chunks: [], offset: 0, exit: null });
  });

  test("keep the newest part of an output that is larger than the log", async () => {
    const request = execRequest(unwalled.project, `head -c ${LIMITS.commandLogBytes * 2} /dev/zero; echo the end`);
    const running = await box.walls.exec(request);
    let heard = 0;
    for await (const chunk of running.output) heard += chunk.stream === "gap" ? 0 : chunk.data.length;
    expect(heard).toBe(LIMITS.commandLogBytes * 2 + 8);
    const log = await unwalled.driver.log(box.id, request.id);
    const kept = log.chunks.reduce((sum, chunk) => sum + (chunk.stream === "gap" ? 0 : chunk.data.length), 0);
    expect(kept).toBeLessThanOrEqual(LIMITS.commandLogBytes);
    expect(log.offset + kept).toBe(heard);
    expect(log.exit?.droppedBytes).toBe(log.offset);
    const last = log.chunks.at(-1);
    expect(last?.stream === "stdout" ? last.data.toString().endsWith("the end\n") : false).toBe(true);
  });

  test("of an earlier server are ended when a later one takes the sandbox over", async () => {
    const request = execRequest(unwalled.project, "exec sleep 100");
    const running = await box.walls.exec(request);
    const later = new FolderDriver({ home: unwalled.home });
    const walls = await later.adopt(box.id, box.walls.launched);
    expect((await running.exit).signal).toBe(9);
    expect(walls === undefined ? undefined : (await hear(await walls.exec(execRequest(unwalled.project, "pwd")))).stdout).toBe(`${box.copy}\n`);
    expect(await later.adopt(newId("sandbox"), box.walls.launched)).toBeUndefined();
  });

  test("are reached on the machine's own ports", async () => {
    const server = createServer((socket) => socket.end("hello")).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const chunks: Buffer[] = [];
    const socket = await box.walls.dial(port);
    socket.end();
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toBe("hello");
    await new Promise((resolve) => server.close(resolve));
    await expect(box.walls.dial(port)).rejects.toMatchObject({ code: "port_unreachable" });
  });
});

describe("files of an unwalled sandbox", () => {
  const text = async (path: string): Promise<string> => {
    const { body } = await box.walls.files.read(path, USER);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  };
  const put = (path: string, content: string, options = {}) => box.walls.files.write(path, USER, (async function* () { yield Buffer.from(content); })(), options);
  const inProject = (name: string): string => join(unwalled.project, name);

  test("are written, read, listed, moved and removed in the copy alone", async () => {
    const { files } = box.walls;
    await expect(put(inProject("f/new.txt"), "hello")).rejects.toMatchObject({ code: "file_not_found" });
    await put(inProject("f/new.txt"), "hello", { parents: true, mode: 0o640 });
    expect(await text(inProject("f/new.txt"))).toBe("hello");
    expect(await text(join(box.copy, "f/new.txt"))).toBe("hello");
    expect(await text("f/new.txt")).toBe("hello");
    expect(await files.stat(inProject("f/new.txt"), USER)).toMatchObject({ path: ".", type: "file", size: 5, mode: "640" });
    await files.mkdir(inProject("f/deep/er"), USER, true);
    expect((await files.list(inProject("f"), USER, 9, 100)).map(({ path, type }) => `${path} ${type}`)).toEqual(["deep dir", "deep/er dir", "new.txt file"]);
    expect(await files.list(inProject("f"), USER, 9, 2)).toHaveLength(2);
    await put(inProject("f/other.txt"), "other");
    await expect(files.move(inProject("f/new.txt"), inProject("f/other.txt"), USER, false)).rejects.toMatchObject({ code: "exists" });
    await files.move(inProject("f/new.txt"), inProject("f/other.txt"), USER, true);
    expect(await text(inProject("f/other.txt"))).toBe("hello");
    await expect(files.remove(inProject("f"), USER, false)).rejects.toMatchObject({ code: "invalid_input" });
    await files.remove(inProject("f"), USER, true);
    await expect(files.stat(inProject("f"), USER)).rejects.toMatchObject({ code: "file_not_found" });
    await expect(files.remove(unwalled.project, USER, true)).rejects.toMatchObject({ code: "invalid_input" });
    expect(existsSync(join(unwalled.project, "f"))).toBe(false);
  });

  test("are read in part", async () => {
    const range = async (offset: number, length: number): Promise<string> => {
      const { body } = await box.walls.files.read(inProject("src/main.js"), USER, { offset, length });
      return Buffer.concat(await body.toArray()).toString();
    };
    expect(await range(8, 3)).toBe("log");
    expect(await range(8, 0)).toBe("");
  });

  test("a write that breaks off changes nothing and leaves nothing", async () => {
    await put(inProject("whole"), "before");
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.from("half");
      throw new Error("the caller went away");
    };
    await expect(box.walls.files.write(inProject("whole"), USER, broken(), {})).rejects.toThrow("went away");
    expect(await text(inProject("whole"))).toBe("before");
    expect(readdirSync(box.copy).filter((name) => name.startsWith(".viv-"))).toEqual([]);
  });

  test("no path and no link leads out of the copy", async () => {
    const { files } = box.walls;
    const outside = join(unwalled.home, "outside");
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, "secret"), "secret");
    symlinkSync(outside, join(box.copy, "absolute"));
    symlinkSync("../../../../../outside", join(box.copy, "relative"));
    symlinkSync(join(outside, "secret"), join(box.copy, "file"));
    symlinkSync(unwalled.project, join(box.copy, "reality"));
    symlinkSync("loop", join(box.copy, "loop"));
    mkdirSync(join(box.copy, "folder"));
    symlinkSync("../file", join(box.copy, "folder/twice"));
    // The control: the system itself follows them all.
    for (const way of ["absolute/secret", "relative/secret", "file", "folder/twice"]) expect(readFileSync(join(box.copy, way), "utf8")).toBe("secret");
    for (const way of ["absolute/secret", "relative/secret", "file", "folder/twice", "reality/a.txt", "../../base", "/etc/passwd", outside]) {
      const path = way.startsWith("/") ? way : `${unwalled.project}/${way}`;
      await expect(text(path), way).rejects.toMatchObject({ code: "denied" });
      await expect(put(path, "overwritten"), way).rejects.toMatchObject({ code: "denied" });
      await expect(files.list(path, USER, 1, 10), way).rejects.toMatchObject({ code: "denied" });
    }
    for (const way of ["absolute/secret", "relative/new", "reality/a.txt"]) {
      await expect(files.remove(inProject(way), USER, true)).rejects.toMatchObject({ code: "denied" });
      await expect(files.mkdir(inProject(way), USER, true)).rejects.toMatchObject({ code: "denied" });
      await expect(files.move(inProject("src"), inProject(way), USER, true)).rejects.toMatchObject({ code: "denied" });
      await expect(files.move(inProject(way), inProject("taken"), USER, true)).rejects.toMatchObject({ code: "denied" });
    }
    await expect(run("true", { cwd: inProject("reality/src") })).rejects.toMatchObject({ code: "denied" });
    await expect(text(inProject("loop"))).rejects.toMatchObject({ code: "invalid_input" });
    expect(await files.stat(inProject("absolute"), USER)).toMatchObject({ type: "link", target: outside });
    await files.remove(inProject("absolute"), USER, true);
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
    expect(existsSync(join(unwalled.project, "src/main.js"))).toBe(true);
  });

  test("links inside the copy are followed", async () => {
    symlinkSync("src/../src", join(box.copy, "inner"));
    symlinkSync(join(box.copy, "src/main.js"), join(box.copy, "main"));
    expect(await text(inProject("inner/main.js"))).toBe("console.log(1);\n");
    expect(await text(inProject("main"))).toBe("console.log(1);\n");
    await put(inProject("main"), "through the link");
    expect(lstatSync(join(box.copy, "main")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(box.copy, "src/main.js"), "utf8")).toBe("through the link");
  });

  test("are watched", async () => {
    const abort = new AbortController();
    const seen: FileChange[] = [];
    mkdirSync(join(box.copy, "watched/inner"), { recursive: true });
    const watching = (async () => {
      for await (const change of box.walls.files.watch(inProject("watched"), USER, true, abort.signal)) seen.push(change);
    })();
    // The watch has begun when it tells of something.
    await expect
      .poll(() => {
        writeFileSync(join(box.copy, "watched/ping"), String(seen.length));
        return seen.length;
      })
      .toBeGreaterThan(0);
    writeFileSync(join(box.copy, "watched/inner/new"), "1");
    await expect.poll(() => seen).toContainEqual({ change: "created", path: "inner/new" });
    rmSync(join(box.copy, "watched/inner/new"));
    await expect.poll(() => seen).toContainEqual({ change: "removed", path: "inner/new" });
    abort.abort();
    await watching;
  });
});

describe("volumes of unwalled sandboxes", () => {
  let own: Unwalled;
  beforeAll(async () => {
    own = await makeUnwalled(FILES);
  });
  afterAll(async () => own?.remove());
  const diff = async (of: Box, lines = false) => diffCopies(await own.volumes.sides({ volume: of.id }, of.base.id, 0), lines, own.home);

  test("SNAP-2 rolling back brings back what the snapshot holds", async () => {
    const made = await own.create();
    writeFileSync(join(made.copy, "mine"), "1");
    const snapshot = newId("snapshot");
    await own.volumes.snapshot(made.id, snapshot);
    writeFileSync(join(made.copy, "mine"), "2");
    rmSync(join(made.copy, "src"), { recursive: true });
    for (let times = 0; times < 2; times += 1) {
      await made.walls.stop(0);
      await own.volumes.rollback(made.id, snapshot);
      const again = await own.launch(made.id, made.base, await own.volumes.paths(made.id));
      expect((await hear(await again.walls.exec(execRequest(own.project, "cat mine src/main.js")))).stdout).toBe("1console.log(1);\n");
    }
  });

  test("SNAP-3 forks are independent of each other, of their origin and of its end", async () => {
    const made = await own.create();
    writeFileSync(join(made.copy, "shared"), "origin");
    const snapshot = newId("snapshot");
    await own.volumes.snapshot(made.id, snapshot);
    const forks = await Promise.all([1, 2].map(async () => own.volumes.create(newId("sandbox"), { snapshot })));
    for (const [index, { folder }] of forks.entries()) writeFileSync(join(folder, "roots/0/own"), String(index));
    await own.volumes.remove("volume", made.id);
    await own.volumes.remove("snapshot", snapshot);
    for (const [index, { folder }] of forks.entries()) {
      expect(readFileSync(join(folder, "roots/0/own"), "utf8")).toBe(String(index));
      expect(readFileSync(join(folder, "roots/0/shared"), "utf8")).toBe("origin");
    }
  });

  test("a diff names what changed, with lines, and nothing else", async () => {
    const made = await own.create();
    expect(await diff(made)).toEqual([]);
    const script = "echo three >> a.txt; rm src/main.js; mkdir new; printf 'x\\ny\\n' > new/file; ln -s /etc/passwd new/link; touch node_modules/dep/index.js; mkdir -p .git; echo x > .git/HEAD; printf '\\0\\1' > blob; mkfifo fifo";
    expect((await hear(await made.walls.exec(execRequest(own.project, script)))).exit.code).toBe(0);
    const none = { added: null, removed: null };
    const names = [
      { path: "a.txt", status: "changed", type: "file", ...none },
      { path: "blob", status: "added", type: "file", ...none },
      { path: "new", status: "added", type: "dir", ...none },
      { path: "new/file", status: "added", type: "file", ...none },
      { path: "new/link", status: "added", type: "link", ...none },
      { path: "src/main.js", status: "deleted", type: "file", ...none },
    ];
    expect(await diff(made)).toEqual(names);
    const counts: Record<string, object> = { "a.txt": { added: 1, removed: 0 }, "new/file": { added: 2, removed: 0 }, "src/main.js": { added: 0, removed: 1 } };
    expect(await diff(made, true)).toEqual(names.map((entry) => ({ ...entry, ...counts[entry.path] })));
    expect(readdirSync(own.home).filter((name) => name.startsWith("diff-"))).toEqual([]);
  });

  test("a diff finds a change that keeps size and time, also in a snapshot, and modes that matter", async () => {
    const made = await own.create();
    await hear(await made.walls.exec(execRequest(own.project, "touch -r a.txt /tmp/$$; printf 'ONE\\nTWO\\n' > a.txt; touch -r /tmp/$$ a.txt; rm /tmp/$$; chmod +x src/main.js")));
    expect(statSync(join(made.copy, "a.txt")).mtimeMs).toBeCloseTo(statSync(join(own.project, "a.txt")).mtimeMs, 0);
    expect((await diff(made)).map(({ path, status }) => `${status} ${path}`)).toEqual(["changed a.txt", "changed src/main.js"]);
    const snapshot = newId("snapshot");
    await own.volumes.snapshot(made.id, snapshot);
    const entries = await diffCopies(await own.volumes.sides({ snapshot }, made.base.id, 0), false, own.home);
    expect(entries.map(({ path }) => path)).toEqual(["a.txt", "src/main.js"]);
  });

  test("a diff follows no link that took a folder's place", async () => {
    const made = await own.create();
    await hear(await made.walls.exec(execRequest(own.project, "rm -r src; ln -s /etc src")));
    expect((await diff(made, true)).map(({ path, status, type }) => `${status} ${type} ${path}`)).toEqual(["changed link src", "deleted file src/main.js"]);
  });

  test("CLONE-5 a base is frozen, used again while nothing changed, and tells how far reality has moved", async () => {
    const made = await own.create();
    const second = await own.create();
    expect(second.base.id).toBe(made.base.id);
    expect(await own.capture.staleness(made.base, own.request)).toMatchObject({ stale: false, changes: [] });
    own.put("a.txt", "moved on\n");
    own.put("added/x", "x");
    expect(await diff(made)).toEqual([]);
    const stale = await own.capture.staleness(made.base, own.request);
    expect(stale).toMatchObject({ stale: true, more: false });
    expect(stale.changes).toEqual([{ path: "a.txt", status: "changed" }, { path: "added", status: "added" }, { path: "added/x", status: "added" }]);
    const third = await own.create();
    expect(third.base.id).not.toBe(made.base.id);
    expect(third.base.report.changed).toBe(2);
    expect(readFileSync(join(third.copy, "a.txt"), "utf8")).toBe("moved on\n");
  });

  test("what a sandbox wrote is charged to it, and what it got is not", async () => {
    const made = await own.create();
    expect(await own.volumes.usage(made.id)).toBe(0);
    writeFileSync(join(made.copy, "large"), Buffer.alloc(1024 ** 2, 1));
    await expect.poll(async () => own.volumes.usage(made.id)).toBeGreaterThanOrEqual(1024 ** 2);
    await own.volumes.snapshot(made.id, newId("snapshot"));
    await expect.poll(async () => own.volumes.usage(made.id)).toBeGreaterThanOrEqual(2 * 1024 ** 2);
  });

  test("a project over the capture limit is refused and nothing of it stays", async () => {
    await expect(own.capture.base({ ...own.request, project: newId("project"), limitBytes: 10 })).rejects.toMatchObject({ code: "invalid_input" });
    const reopened = await FolderVolumes.open({ home: own.home });
    await reopened.close();
    expect(readdirSync(join(own.home, "folders/tips"))).toEqual([]);
  });

  test("removing leaves nothing, and what a crash left is found and removed", async () => {
    const fresh = await makeUnwalled(FILES);
    try {
      const made = await fresh.create();
      const snapshot = newId("snapshot");
      await fresh.volumes.snapshot(made.id, snapshot);
      chmodSync(join(made.copy, "src"), 0o555);
      await hear(await made.walls.exec(execRequest(fresh.project, "i=0; while [ $i -lt 600 ]; do mkdir deep-folder && cd -P deep-folder || exit; i=$((i+1)); done")));
      const left = await fresh.create();
      await made.walls.stop(0);
      await fresh.driver.clear(made.id, "remove");
      await fresh.volumes.remove("snapshot", snapshot);
      await fresh.volumes.remove("volume", made.id);
      await fresh.volumes.close();
      mkdirSync(join(fresh.home, "folders/volumes/.making-0123456789abcdef"));
      const later = await FolderVolumes.open({ home: fresh.home });
      const none = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set<string>(), projects: new Set<string>() };
      expect(await later.reconcile({ ...none, volumes: new Set([left.id]), bases: new Set([left.base.id]) })).toEqual(["volume .making-0123456789abcdef"]);
      expect(await later.reconcile(none)).toHaveLength(2);
      expect(await fresh.driver.reconcile(async () => new Set())).toHaveLength(1);
      await later.close();
      const files = execFileSync("find", [join(fresh.home, "folders"), "-mindepth", "2"], { encoding: "utf8" });
      expect(files).toBe("");
    } finally {
      await fresh.remove();
    }
  });
});
