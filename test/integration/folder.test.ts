import { createServer } from "node:net";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileChange } from "../../src/base/schema/files.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { FolderDriver } from "../../src/machine/drivers/folder/folder.ts";
import { type Box, execRequest, hear, makeUnwalled, type Unwalled, USER } from "../support/unwalled.ts";

const FILES = { "a.txt": "one\ntwo\n", "src/main.js": "console.log(1);\n", "node_modules/dep/index.js": "module.exports = 1;\n" };
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
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
const run = async (line: string, more: Parameters<typeof execRequest>[2] = {}) =>
  hear(await box.walls.commands.exec(execRequest(unwalled.project, line, more)));

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
    const names = stdout
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("_=") && !line.startsWith("SHLVL=") && !line.startsWith("OLDPWD="));
    expect(names.toSorted()).toEqual([
      "GREETING=http://hello",
      `PATH=${box.copy}/bin:/usr/bin:/bin`,
      `PWD=${box.copy}`,
      `VIV_PROJECT=${box.copy}`,
    ]);
  });

  test("tell their exit code, their signal, and both streams", async () => {
    expect((await run("echo out; echo err >&2; exit 7")).exit.code).toBe(7);
    expect(await run("echo out; echo err >&2")).toMatchObject({ stdout: "out\n", stderr: "err\n" });
    expect((await run("kill -9 $$")).exit).toMatchObject({ code: null, signal: 9 });
  });

  test("read what is written to them until it ends", async () => {
    const running = await box.walls.commands.exec(execRequest(unwalled.project, "cat", { stdin: true }));
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
    const polite = await run("trap 'echo bye; exit 3' TERM; sleep 100 & wait", { timeoutMs: 1_000 });
    expect(polite).toMatchObject({ stdout: "bye\n", exit: { timedOut: true, code: 3 } });
    const stubborn = await run("trap '' TERM; sleep 100 & echo $!; while :; do sleep 1; done", { timeoutMs: 1_000 });
    expect(stubborn.exit).toMatchObject({ timedOut: true, signal: 9 });
    await gone(Number(stubborn.stdout));
  });

  test("end although a background child holds their output open, and stop() ends that child", async () => {
    const own = await makeUnwalled(FILES);
    try {
      const made = await own.create();
      const { stdout, exit } = await hear(await made.walls.commands.exec(execRequest(own.project, "sleep 100 & echo $!")));
      expect(exit.code).toBe(0);
      expect(alive(Number(stdout))).toBe(true);
      await made.walls.stop(0);
      await gone(Number(stdout));
      await expect(made.walls.commands.exec(execRequest(own.project, "true"))).rejects.toMatchObject({ code: "not_running" });
    } finally {
      await own.remove();
    }
  });

  test("wait while their output has no reader, and none of it is lost", async () => {
    const running = await box.walls.commands.exec(execRequest(unwalled.project, "head -c 3000000 /dev/zero; touch finished"));
    await expect.poll(() => lstatSync(join(unwalled.home, "folders/commands", box.id)).isDirectory()).toBe(true);
    expect(existsSync(join(box.copy, "finished"))).toBe(false);
    const { stdout, exit } = await hear(running);
    expect(stdout.length).toBe(3_000_000);
    expect(exit.outputBytes).toBe(3_000_000);
    expect(existsSync(join(box.copy, "finished"))).toBe(true);
  });

  test("can be attached to, signalled, and left alone", async () => {
    const request = execRequest(unwalled.project, "echo early; read line; echo late $line", { stdin: true });
    const running = await box.walls.commands.exec(request);
    const first = running.output[Symbol.asyncIterator]();
    expect((await first.next()).value).toMatchObject({ data: Buffer.from("early\n") });
    running.detach();
    const attached = await box.walls.commands.attach(request.id, true);
    expect(attached?.offset).toBe(6);
    await attached?.write(Buffer.from("hello\n"));
    expect(attached === undefined ? undefined : (await hear(attached)).stdout).toBe("late hello\n");
    expect(await box.walls.commands.attach(request.id, false)).toBeUndefined();
  });

  test("leave a log with their output and their end", async () => {
    const request = execRequest(unwalled.project, "echo one; echo two >&2; exit 5");
    await hear(await box.walls.commands.exec(request));
    const log = await unwalled.driver.logs.read(box.id, request.id);
    expect(log.chunks.map((chunk) => (chunk.stream === "gap" ? "" : `${chunk.stream} ${chunk.data.toString()}`)).toSorted()).toEqual([
      "stderr two\n",
      "stdout one\n",
    ]);
    expect(log).toMatchObject({ offset: 0, exit: { code: 5, outputBytes: 8, droppedBytes: 0 } });
    expect(await unwalled.driver.logs.read(box.id, newId("command"))).toEqual({ chunks: [], offset: 0, exit: null });
  });

  test("keep the newest part of an output that is larger than the log", async () => {
    const request = execRequest(unwalled.project, `head -c ${LIMITS.commandLogBytes * 2} /dev/zero; echo the end`);
    const running = await box.walls.commands.exec(request);
    let heard = 0;
    for await (const chunk of running.output) heard += chunk.stream === "gap" ? 0 : chunk.data.length;
    expect(heard).toBe(LIMITS.commandLogBytes * 2 + 8);
    const log = await unwalled.driver.logs.read(box.id, request.id);
    const kept = log.chunks.reduce((sum, chunk) => sum + (chunk.stream === "gap" ? 0 : chunk.data.length), 0);
    expect(kept).toBeLessThanOrEqual(LIMITS.commandLogBytes);
    expect(log.offset + kept).toBe(heard);
    expect(log.exit?.droppedBytes).toBe(log.offset);
    const last = log.chunks.at(-1);
    expect(last?.stream === "stdout" ? last.data.toString().endsWith("the end\n") : false).toBe(true);
  });

  test("of an earlier server are ended when a later one takes the sandbox over", async () => {
    const request = execRequest(unwalled.project, "exec sleep 100");
    const running = await box.walls.commands.exec(request);
    const later = new FolderDriver({ home: unwalled.home });
    const walls = await later.adopt(box.id, box.walls.launched);
    expect((await running.exit).signal).toBe(9);
    expect(walls === undefined ? undefined : (await hear(await walls.commands.exec(execRequest(unwalled.project, "pwd")))).stdout).toBe(
      `${box.copy}\n`,
    );
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
  const put = (path: string, content: string, options = {}) =>
    box.walls.files.write(
      path,
      USER,
      (async function* () {
        yield Buffer.from(content);
      })(),
      options,
    );
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
    expect((await files.list(inProject("f"), USER, 9, 100)).map(({ path, type }) => `${path} ${type}`)).toEqual([
      "deep dir",
      "deep/er dir",
      "new.txt file",
    ]);
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
    for (const way of ["absolute/secret", "relative/secret", "file", "folder/twice"])
      expect(readFileSync(join(box.copy, way), "utf8")).toBe("secret");
    for (const way of [
      "absolute/secret",
      "relative/secret",
      "file",
      "folder/twice",
      "reality/a.txt",
      "../../base",
      "/etc/passwd",
      outside,
    ]) {
      const path = way.startsWith("/") ? way : `${unwalled.project}/${way}`;
      await expect(text(path)).rejects.toMatchObject({ code: "denied" });
      await expect(put(path, "overwritten")).rejects.toMatchObject({ code: "denied" });
      await expect(files.list(path, USER, 1, 10)).rejects.toMatchObject({ code: "denied" });
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
