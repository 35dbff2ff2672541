import { createServer } from "node:net";
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import { FolderDriver } from "../../src/machine/drivers/folder/folder.ts";
import { hear, USER } from "../support/driver-lab.ts";
import { type Box, execRequest, makeUnwalled, type Unwalled } from "../support/unwalled.ts";

const FILES = { "a.txt": "one\ntwo\n", "src/main.js": "console.log(1);\n", "node_modules/dep/index.js": "module.exports = 1;\n" };

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

  test("as another user or with a terminal are refused", async () => {
    await expect(run("true", { user: "12345" })).rejects.toMatchObject({ code: "unsupported" });
    await expect(run("true", { terminal: { rows: 24, cols: 80 } })).rejects.toMatchObject({ code: "unsupported" });
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

  test("are those of the copy, by their path in the project, in the copy and below it", async () => {
    await put(inProject("f/new.txt"), "hello", { parents: true });
    for (const path of [inProject("f/new.txt"), join(box.copy, "f/new.txt"), "f/new.txt"]) expect(await text(path)).toBe("hello");
    await expect(box.walls.files.remove(unwalled.project, USER, true)).rejects.toMatchObject({ code: "invalid_input" });
    expect(existsSync(join(unwalled.project, "f"))).toBe(false);
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
});
