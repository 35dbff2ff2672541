import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileChange } from "../../src/base/schema/files.ts";
import type { FileOperations } from "../../src/machine/drivers/drivers.ts";
import { decodePath, encodePath } from "../../src/base/schema/path-bytes.ts";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

describe("files of a sandbox", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  let files: FileOperations;
  let folder: string;
  beforeAll(async () => {
    cell = await new CellProcess().start();
    files = cell.client.files;
    chmodSync(cell.folder, 0o755);
    folder = join(cell.folder, "files");
    mkdirSync(folder);
    chmodSync(folder, 0o777);
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  async function* parts(...data: (string | Buffer)[]): AsyncGenerator<Uint8Array> {
    for (const part of data) yield Buffer.from(part);
  }
  const read = async (path: string, range?: { offset: number; length: number }): Promise<string> =>
    (await buffer((await files.read(path, "root", range)).body)).toString();

  const oddNames = [
    "with\nnewline",
    "with space",
    "-dash",
    "'quote\"",
    "\x1f\x7f\x01",
    decodePath(Buffer.from([0xff, 0xfe, 0x41, 0xc3])),
    "ü😀",
    "x".repeat(255),
  ];

  test.each(oddNames.map((name) => [name]))("may be named %j", async (name) => {
    const path = `${folder}/odd/${name}`;
    await files.write(path, "root", parts("a", "b"), { parents: true });
    expect(await read(path)).toBe("ab");
    expect((await files.list(`${folder}/odd`, "root", 1, 100)).map((entry) => entry.path)).toEqual([name]);
    expect((await files.stat(path, "root")).size).toBe(2);
    await files.move(path, `${folder}/moved`, "root", false);
    await files.remove(`${folder}/moved`, "root", false);
    expect(readdirSync(`${folder}/odd`)).toEqual([]);
  });

  test("with names that are no text keep them through strings and JSON", () => {
    for (let round = 0; round < 200; round++) {
      const bytes = Buffer.from(Array.from({ length: 40 }, () => 1 + Math.floor(Math.random() * 255)));
      const text = JSON.parse(JSON.stringify(decodePath(bytes))) as string;
      expect(encodePath(text)).toEqual(bytes);
    }
  });

  test("are written whole or not at all, keeping mode and owner", async () => {
    const path = `${folder}/kept`;
    writeFileSync(path, "old");
    chownSync(path, 1234, 1235);
    chmodSync(path, 0o640);
    await files.write(path, "root", parts("new content"), {});
    expect(readFileSync(path, "utf8")).toBe("new content");
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 1235, mode: 0o100640 });
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(200_000);
      throw new Error("upload ended");
    }
    await expect(files.write(path, "root", broken(), {})).rejects.toThrow("upload ended");
    expect(readFileSync(path, "utf8")).toBe("new content");
    await expect.poll(() => readdirSync(folder).filter((name) => name.startsWith(".viv-"))).toEqual([]);
  });

  test("of 20 MB arrive and come back unharmed, in ranges too", async () => {
    const data = Buffer.from(Array.from({ length: 1 << 20 }, (_, at) => (at * 7) % 251));
    await files.write(`${folder}/large`, "root", parts(...Array.from({ length: 20 }, () => data)), { mode: 0o600 });
    const { entry, body } = await files.read(`${folder}/large`, "root");
    expect(entry).toMatchObject({ type: "file", size: 20 << 20, mode: "600" });
    expect((await buffer(body)).equals(Buffer.concat(Array.from({ length: 20 }, () => data)))).toBe(true);
    const { body: piece } = await files.read(`${folder}/large`, "root", { offset: (1 << 20) - 3, length: 7 });
    expect(await buffer(piece)).toEqual(Buffer.concat([data.subarray(-3), data.subarray(0, 4)]));
  });

  test("obey the rights of the user", async () => {
    await expect(files.read("/etc/shadow", "nobody")).rejects.toMatchObject({ code: "denied" });
    await files.write(`${folder}/theirs`, "nobody", parts("x"), {});
    expect(statSync(`${folder}/theirs`).uid).toBe(65534);
    await expect(files.write("/etc/theirs", "nobody", parts("x"), {})).rejects.toMatchObject({ code: "denied" });
  });

  test("that are fifos or devices are refused at once", async () => {
    execFileSync("mkfifo", [`${folder}/fifo`]);
    await expect(files.read(`${folder}/fifo`, "root")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files.write(`${folder}/fifo`, "root", parts("x"), {})).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files.read("/dev/zero", "root")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files.read(folder, "root")).rejects.toMatchObject({ code: "invalid_input" });
    expect((await files.stat(`${folder}/fifo`, "root")).type).toBe("fifo");
  });

  test("without a size, as those of /proc, are read to their end", async () => {
    expect(await read("/proc/self/status")).toContain("Name:");
  });

  test("are listed to the depth and number asked for, and links are not followed", async () => {
    const tree = `${folder}/tree`;
    mkdirSync(`${tree}/a/b/c`, { recursive: true });
    symlinkSync("/etc", `${tree}/link`);
    expect((await files.list(tree, "root", 1, 100)).map(({ path, type }) => `${path} ${type}`).toSorted()).toEqual(["a dir", "link link"]);
    expect((await files.list(tree, "root", 9, 100)).map(({ path }) => path).toSorted()).toEqual(["a", "a/b", "a/b/c", "link"]);
    expect(await files.list(tree, "root", 9, 2)).toHaveLength(2);
    expect((await files.list(tree, "root", 1, 9)).find(({ path }) => path === "link")?.target).toBe("/etc");
    await expect(files.list(`${tree}/no`, "root", 1, 9)).rejects.toMatchObject({ code: "file_not_found" });
  });

  test("are moved without replacing, unless asked", async () => {
    writeFileSync(`${folder}/one`, "1");
    writeFileSync(`${folder}/two`, "2");
    await expect(files.move(`${folder}/one`, `${folder}/two`, "root", false)).rejects.toMatchObject({ code: "exists" });
    await files.move(`${folder}/one`, `${folder}/two`, "root", true);
    expect(readFileSync(`${folder}/two`, "utf8")).toBe("1");
  });

  test("are removed as deep as they lie, and no further than the tree", async () => {
    const outside = `${folder}/outside`;
    mkdirSync(outside);
    writeFileSync(`${outside}/stays`, "");
    // A path this deep has no name the kernel takes: it is made step by step.
    const dig = `const fs = require("node:fs");
      fs.mkdirSync(process.argv[1]); process.chdir(process.argv[1]);
      for (let at = 0; at < 1500; at++) { fs.mkdirSync("deep-folder"); process.chdir("deep-folder"); }
      fs.symlinkSync(process.argv[2], "link"); fs.writeFileSync("file", "");`;
    execFileSync(process.execPath, ["-e", dig, `${folder}/deep`, outside]);
    await expect(files.remove(`${folder}/deep`, "root", false)).rejects.toMatchObject({ code: "invalid_input" });
    await files.remove(`${folder}/deep`, "root", true);
    expect(existsSync(`${folder}/deep`)).toBe(false);
    expect(readdirSync(outside)).toEqual(["stays"]);
    symlinkSync(outside, `${folder}/link`);
    await files.remove(`${folder}/link`, "root", true);
    expect(readdirSync(outside)).toEqual(["stays"]);
  });

  test("lie in folders that can be made with their parents", async () => {
    await files.mkdir(`${folder}/new/one`, "root", true);
    await files.mkdir(`${folder}/new/one`, "root", true);
    await expect(files.mkdir(`${folder}/new/one`, "root", false)).rejects.toMatchObject({ code: "exists" });
    await expect(files.mkdir(`${folder}/no/one`, "root", false)).rejects.toMatchObject({ code: "file_not_found" });
  });

  test("are watched, new folders too, until the watcher goes", async () => {
    const root = `${folder}/watched`;
    mkdirSync(`${root}/sub`, { recursive: true });
    const stop = new AbortController();
    const seen: string[] = [];
    const steps = [
      () => writeFileSync(`${root}/sub/file`, "x"),
      () => mkdirSync(`${root}/fresh`),
      () => writeFileSync(`${root}/fresh/inner`, "x"),
      () => execFileSync("mv", [`${root}/sub/file`, `${root}/moved`]),
      () => rmSync(`${root}/moved`),
    ];
    const expected = ["created sub/file", "created fresh", "created fresh/inner", "moved moved", "removed moved"];
    const has = ({ change, path }: FileChange, wanted: string | undefined) => `${change} ${path}` === wanted;
    const watch = files.watch(root, "root", true, stop.signal)[Symbol.asyncIterator]();
    let next = watch.next();
    await expect.poll(() => cellWatches(cell)).toBe(true);
    for (const [index, step] of steps.entries()) {
      step();
      for (;;) {
        const result = await next;
        if (result.done === true) throw new Error("the watch ended");
        next = watch.next();
        seen.push(`${result.value.change} ${result.value.path}`);
        if (has(result.value, expected[index])) break;
      }
    }
    expect(seen).toEqual(expect.arrayContaining(expected));
    stop.abort();
    for (let result = await next; result.done !== true; result = await watch.next()) continue;
    await expect.poll(() => cellWatches(cell)).toBe(false);
  });

  test("are watched in folders nested many hundred deep", async () => {
    const root = `${folder}/nested`;
    mkdirSync(`${root}${"/d".repeat(900)}`, { recursive: true });
    const stop = new AbortController();
    const watch = files.watch(root, "root", true, stop.signal)[Symbol.asyncIterator]();
    const next = watch.next();
    await expect.poll(() => cellWatches(cell)).toBe(true);
    // Until the watch stands, the file's own event goes unseen; then every new one is seen.
    const writing = setInterval(() => writeFileSync(`${root}/d/file`, "x"), 20);
    const seen = await next;
    clearInterval(writing);
    expect(seen.done !== true && seen.value.path).toBe("d/file");
    stop.abort();
    for (let result = await watch.next(); result.done !== true; result = await watch.next()) continue;
  });
});

test(
  "a file that no longer fits is refused in words while it arrives, and leaves nothing",
  needs("linux", "root", "compiler"),
  async () => {
    const cell = await new CellProcess().startWithSmallLogs("2m");
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let count = 0; count < 500; count++) yield Buffer.alloc(1 << 20);
    }
    try {
      const { files } = cell.client;
      await expect(files.write(`${cell.logs}/large`, "root", endless(), {})).rejects.toMatchObject({ code: "disk_full" });
      expect(await files.list(cell.logs, "root", 1, 10)).toEqual([]);
      await expect(files.write(`${cell.logs}/no/parent`, "root", endless(), {})).rejects.toMatchObject({ code: "file_not_found" });
    } finally {
      await cell.remove();
    }
    expect(cell.complaints).toBe("");
  },
);

/** Whether a process below process 1 holds an inotify watch. */
function cellWatches(cell: CellProcess): boolean {
  const first = cell.firstPid;
  const children = readFileSync(`/proc/${first}/task/${first}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "");
  return children.some((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fdinfo`).some((fd) => readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8").includes("inotify wd:2"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false; // it has just ended
      throw error;
    }
  });
}
