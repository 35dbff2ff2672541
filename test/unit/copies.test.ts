/** Copies between this machine and a sandbox: what comes out of one is hostile. */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { packTar, type TarEntry } from "modern-tar";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseSide } from "../../src/interfaces/cli/commands/cp.ts";
import { requireDestination } from "../../src/interfaces/client/copy/destination.ts";
import { isInnerLink, receiveFolder, safeParts } from "../../src/interfaces/client/copy/receive.ts";
import { packFolder } from "../../src/interfaces/client/copy/send.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-copies-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a copy out of a sandbox", () => {
  const receive = async (entries: TarEntry[]) => receiveFolder(join(folder, "to"), Readable.from([Buffer.from(await packTar(entries))]));
  const file = (name: string, body = "evil"): TarEntry => ({ header: { name, size: body.length, type: "file", mode: 0o4777 }, body });
  const link = (name: string, linkname: string): TarEntry => ({ header: { name, size: 0, type: "symlink", linkname } });

  test("writes files, folders and links below the destination, without set-id bits", async () => {
    const result = await receive([
      { header: { name: "a/", size: 0, type: "directory" } },
      file("a/b/c.txt", "good"),
      link("a/up", "../top"),
      file("top", "x"),
    ]);
    expect(result).toMatchObject({ files: 2, bytes: 5, skipped: [] });
    expect(readFileSync(join(folder, "to/a/b/c.txt"), "utf8")).toBe("good");
    expect(lstatSync(join(folder, "to/a/b/c.txt")).mode & 0o7000).toBe(0);
    expect(readlinkSync(join(folder, "to/a/up"))).toBe("../top");
  });

  test("writes nothing outside it, whatever the names and links say", async () => {
    const outside = join(folder, "outside");
    mkdirSync(outside);
    const result = await receive([
      file("../escaped"),
      file(join(folder, "absolute")),
      file("a/../../escaped"),
      link("door", outside),
      file("door/through"),
      link("climb", "../outside"),
      link("here", "."),
      link("chain", "here/../outside"),
      { header: { name: "hard", size: 0, type: "link", linkname: "/etc/passwd" } },
      { header: { name: "pipe", size: 0, type: "fifo" } },
      { header: { name: "device", size: 0, type: "block-device" } },
    ]);
    expect(result.skipped.map(({ path }) => path).toSorted()).toEqual(
      [join(folder, "absolute"), "../escaped", "a/../../escaped", "chain", "climb", "device", "door", "hard", "pipe"].toSorted(),
    );
    expect(existsSync(join(folder, "escaped"))).toBe(false);
    expect(existsSync(join(folder, "absolute"))).toBe(false);
    expect(existsSync(join(outside, "through"))).toBe(false);
    expect(lstatSync(join(folder, "to/door")).isDirectory()).toBe(true);
  });

  test("does not go through links that lie at the destination, and replaces a link instead of writing to its target", async () => {
    mkdirSync(join(folder, "to"));
    mkdirSync(join(folder, "outside"));
    writeFileSync(join(folder, "precious"), "mine");
    symlinkSync(join(folder, "outside"), join(folder, "to/door"));
    symlinkSync(join(folder, "precious"), join(folder, "to/file"));
    const result = await receive([file("door/through"), file("file", "new")]);
    expect(result.skipped).toEqual([{ path: "door/through", why: "something that is no folder is in its way" }]);
    expect(existsSync(join(folder, "outside/through"))).toBe(false);
    expect(readFileSync(join(folder, "precious"), "utf8")).toBe("mine");
    expect(readFileSync(join(folder, "to/file"), "utf8")).toBe("new");
  });

  test("fails on an archive that breaks off, leaving no half-written file under its name", async () => {
    const archive = Buffer.from(await packTar([file("big", "x".repeat(5000))]));
    await expect(receiveFolder(join(folder, "to"), Readable.from([archive.subarray(0, 2000)]))).rejects.toThrow();
    expect(existsSync(join(folder, "to/big"))).toBe(false);
  });

  test("replaces no special file, and no link to one", async () => {
    mkdirSync(join(folder, "to"));
    spawnSync("mkfifo", [join(folder, "to/pipe")]);
    symlinkSync("pipe", join(folder, "to/link"));
    const { files, skipped } = await receive([file("pipe"), file("link"), file("other")]);
    expect(files).toBe(1);
    expect(skipped.map(({ path, why }) => `${path}: ${why}`)).toEqual([
      "pipe: a device or another special file is in its way",
      "link: a device or another special file is in its way",
    ]);
    expect(lstatSync(join(folder, "to/pipe")).isFIFO()).toBe(true);
    expect(lstatSync(join(folder, "to/link")).isSymbolicLink()).toBe(true);
    for (const name of ["pipe", "link"])
      for (const type of ["file", "dir"] as const)
        await expect(requireDestination(join(folder, "to", name), type)).rejects.toThrow("is a device or another special file");
  });

  test("goes to a path that is free, to a file or to a link to one, and a folder to a folder", async () => {
    mkdirSync(join(folder, "dir"));
    writeFileSync(join(folder, "file"), "");
    for (const [name, target] of Object.entries({ near: "file", nowhere: "absent", "to-dir": "dir" }))
      symlinkSync(target, join(folder, name));
    const refused = async (name: string, type: "file" | "dir"): Promise<string> =>
      requireDestination(join(folder, name), type).then(
        () => "",
        (error: Error) => error.message.replace(`${folder}/`, ""),
      );
    for (const name of ["absent", "file", "near", "absent/deep/below"]) expect(await refused(name, "file"), name).toBe("");
    for (const name of ["absent", "dir", "to-dir", "absent/deep/below"]) expect(await refused(name, "dir"), name).toBe("");
    expect(await refused("nowhere", "file")).toBe("nowhere is a link that leads nowhere.");
    expect(await refused("dir", "file")).toBe("dir is a folder.");
    expect(await refused("near", "dir")).toBe("near is no folder.");
  });

  test("never goes among the machine's devices, by a link, as a folder or as a part of one", async () => {
    const devices = join(folder, "to/devices");
    mkdirSync(devices, { recursive: true });
    symlinkSync("to/devices", join(folder, "link"));
    const among = "is among the devices of this machine";
    await expect(requireDestination(join(devices, "new"), "file", devices)).rejects.toThrow(among);
    await expect(requireDestination(join(folder, "link/new"), "file", devices)).rejects.toThrow(among);
    await expect(requireDestination(join(folder, "link"), "dir", devices)).rejects.toThrow(among);
    await expect(requireDestination(join(devices, "new/deep"), "dir", devices)).rejects.toThrow(among);
    await expect(requireDestination(join(folder, "to/devices-not"), "dir", devices)).resolves.toBeUndefined();
    const archive = Readable.from([Buffer.from(await packTar([file("devices/new"), file("beside")]))]);
    const { files, skipped } = await receiveFolder(join(folder, "to"), archive, devices);
    expect([files, skipped.map(({ path }) => path)]).toEqual([1, ["devices/new"]]);
    expect(existsSync(join(devices, "new"))).toBe(false);
  });

  test("judges names and links by themselves", () => {
    expect(safeParts("./a//b/")).toEqual(["a", "b"]);
    expect(safeParts("a/..")).toBeUndefined();
    expect(safeParts("/a")).toBeUndefined();
    expect(isInnerLink(["a", "b"], "../c")).toBe(true);
    expect(isInnerLink(["a"], "../c")).toBe(false);
    expect(isInnerLink(["a"], "b/../c")).toBe(false);
    expect(isInnerLink(["a"], "/etc")).toBe(false);
  });

  test("is told from a copy into one by the side that names a sandbox", () => {
    expect(parseSide("try:src/a b")).toEqual({ sandbox: "try", path: "src/a b" });
    expect(parseSide("try:")).toEqual({ sandbox: "try", path: "." });
    expect(parseSide("./try:x")).toEqual({ sandbox: undefined, path: "./try:x" });
    expect(parseSide("/tmp/a:b")).toEqual({ sandbox: undefined, path: "/tmp/a:b" });
  });
});

describe("a copy into a sandbox", () => {
  test("packs files and folders, lists links apart and leaves special files out", async () => {
    mkdirSync(join(folder, "in/deep/empty"), { recursive: true });
    writeFileSync(join(folder, "in/deep/file"), "content");
    writeFileSync(join(folder, "in", "n".repeat(150)), "");
    symlinkSync("/etc", join(folder, "in/link"));
    spawnSync("mkfifo", [join(folder, "in/pipe")]);
    const packed = packFolder(join(folder, "in"));
    const result = await receiveFolder(join(folder, "to"), packed.archive);
    expect(result).toMatchObject({ files: 2, skipped: [] });
    expect(packed.links).toEqual([{ path: "link", target: "/etc" }]);
    expect(packed.skipped).toEqual([{ path: "pipe", why: "it is a special file" }]);
    expect(readFileSync(join(folder, "to/deep/file"), "utf8")).toBe("content");
    expect(lstatSync(join(folder, "to/deep/empty")).isDirectory()).toBe(true);
    expect(existsSync(join(folder, "to", "n".repeat(150)))).toBe(true);
  });
});
