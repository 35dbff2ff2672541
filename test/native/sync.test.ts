import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compile } from "../support/attacks.ts";
import { type CellForTests, describeTree, startCell } from "../support/cell.ts";
import { Mutations } from "../support/mutations.ts";
import { needs } from "../support/skip.ts";

const FULL = { folderTimes: true, links: true };
let cell: CellForTests;
let count = 0;

/** A source, an empty tip and the fields of a sync between them. */
function place(target = "tip"): { source: string; target: string; manifest: string; mode: string } {
  const folder = join(cell.folder, `sync${count++}`);
  mkdirSync(join(folder, "source"), { recursive: true });
  mkdirSync(join(folder, target));
  return { source: join(folder, "source"), target: join(folder, target), manifest: join(folder, "manifest"), mode: "tip" };
}

function write(root: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), text);
  }
}

describe("sync", needs("linux", "root"), () => {
  beforeAll(() => {
    cell = startCell();
  });
  afterAll(async () => cell?.remove());

  test.each([1, 2, 3, 4])("keeps a tip equal to a tree under random changes, seed %i", async (seed) => {
    const fields = place();
    const mutations = new Mutations(fields.source, seed);
    for (let round = 0; round < 40; round++) {
      for (let change = 0; change < 12; change++) mutations.change();
      await cell.ask("sync", fields);
      expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
      const again = await cell.ask("sync", fields);
      expect([again.number("changed"), again.number("removed")]).toEqual([0, 0]);
    }
  });

  test.each([5, 6, 7, 8])("keeps a tip equal when only the folders a watch reported are compared, seed %i", async (seed) => {
    const fields = place();
    const key = `random${seed}`;
    const mutations = new Mutations(fields.source, seed);
    await cell.ask("watch", { key, path: fields.source });
    await cell.ask("sync", fields);
    for (let round = 0; round < 40; round++) {
      for (let change = 0; change < 6; change++) mutations.change();
      const drained = await cell.ask("drain", { key });
      expect(drained.flag("overflow")).toBe(false);
      await cell.ask("sync", { ...fields, dirty: drained.rawAll("dirty") });
      expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
    }
    await cell.ask("unwatch", { key });
  });

  test.each([11, 12, 13, 14])("writes over files in their place, and keeps a second tree equal, seed %i", async (seed) => {
    const fields = { ...place(), in_place: 1 };
    const [key, twin, marker] = [`twin${seed}`, `${fields.target}-twin`, `${fields.target}-marker`];
    const mutations = new Mutations(fields.source, seed);
    for (let change = 0; change < 100; change++) mutations.change();
    await cell.ask("watch", { key, path: fields.source });
    await cell.ask("sync", fields);
    execFileSync("cp", ["-a", fields.target, twin]);
    for (let round = 0; round < 40; round++) {
      for (let change = 0; change < 6; change++) mutations.change();
      const dirty = (await cell.ask("drain", { key })).rawAll("dirty");
      const reply = await cell.ask("sync", { ...fields, dirty, marker, twin, twin_bytes: 10 ** 9, twin_files: 1000 });
      expect(reply.flag("twin")).toBe(true);
      for (const tree of [fields.target, twin]) expect(describeTree(tree, FULL)).toEqual(describeTree(fields.source, FULL));
      expect(existsSync(marker)).toBe(false);
    }
    await cell.ask("unwatch", { key });
  });

  test("a file that is written over is the same file, and gets all of the new one", async () => {
    const fields = { ...place(), in_place: 1 };
    compile(cell.folder, "attributes");
    const attributes = join(cell.folder, "attributes");
    write(fields.source, {
      short: "a much longer text before",
      long: "x",
      empty: "full",
      attributed: "1",
      linked: "1",
      sparse: "s".repeat(9000),
    });
    linkSync(join(fields.source, "linked"), join(fields.source, "again"));
    execFileSync(attributes, [join(fields.source, "attributed"), "user.old=1"]);
    await cell.ask("sync", fields);
    const inode = (name: string): number => lstatSync(join(fields.target, name)).ino;
    const [short, attributed] = [inode("short"), inode("attributed")];
    rmSync(join(fields.source, "attributed"));
    write(fields.source, { short: "brief", long: "y".repeat(100_000), empty: "", attributed: "2", linked: "2" });
    truncateSync(join(fields.source, "sparse"), 0);
    truncateSync(join(fields.source, "sparse"), 8192);
    await cell.ask("sync", { ...fields, dirty: ["."] });
    expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
    expect(readFileSync(join(fields.target, "sparse"))).toEqual(Buffer.alloc(8192));
    expect([inode("short") === short, inode("attributed") === attributed]).toEqual([true, false]);
    expect(execFileSync(attributes, [join(fields.target, "attributed")]).toString()).not.toContain("user.");
  });

  test("a second tree that can't take a change is given up, and the sync goes on", async () => {
    const fields = place();
    const twin = `${fields.target}-twin`;
    write(fields.source, { "a/file": "1", "b/file": "1" });
    await cell.ask("sync", fields);
    const attempt = async (limits: { twin_bytes: number; twin_files: number }): Promise<boolean> => {
      rmSync(twin, { recursive: true, force: true });
      execFileSync("cp", ["-a", fields.target, twin]);
      for (const name of ["a/file", "b/file"]) appendFileSync(join(fields.source, name), "more");
      const reply = await cell.ask("sync", { ...fields, dirty: ["a", "b"], twin, ...limits });
      expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
      return reply.flag("twin");
    };
    expect(await attempt({ twin_bytes: 100, twin_files: 2 })).toBe(true);
    expect(await attempt({ twin_bytes: 10, twin_files: 2 })).toBe(false);
    expect(await attempt({ twin_bytes: 100, twin_files: 1 })).toBe(false);
    rmSync(twin, { recursive: true });
    execFileSync("cp", ["-a", fields.target, twin]);
    // As no server leaves it: what lies outside must stay as it is.
    const outside = join(fields.target, "../outside");
    mkdirSync(outside);
    write(outside, { file: "outside" });
    rmSync(join(twin, "a"), { recursive: true });
    symlinkSync(outside, join(twin, "a"));
    appendFileSync(join(fields.source, "a/file"), "again");
    const reply = await cell.ask("sync", { ...fields, dirty: ["a"], twin, twin_bytes: 1000, twin_files: 10 });
    expect([reply.flag("twin"), readFileSync(join(outside, "file"), "utf8")]).toEqual([false, "outside"]);
  });

  test("a manifest grows by what changed, does without what a killed sync left behind it, and is written anew when most of it is old", async () => {
    const fields = place();
    for (let folder = 0; folder < 200; folder++) for (let file = 0; file < 20; file++) write(fields.source, { [`${folder}/${file}`]: "1" });
    await cell.ask("sync", fields);
    const size = (): number => lstatSync(fields.manifest).size;
    const inode = (): number => lstatSync(fields.manifest).ino;
    const [first, whole] = [inode(), size()];
    const next = async (folder: string): Promise<void> => {
      write(fields.source, { [`${folder}/0`]: `${Math.random()}` });
      expect((await cell.ask("sync", { ...fields, dirty: [folder] })).number("changed")).toBe(1);
      expect(readFileSync(join(fields.target, folder, "0"), "utf8")).toBe(readFileSync(join(fields.source, folder, "0"), "utf8"));
    };
    await next("7");
    expect([inode() === first, size() > whole, size() < whole + 4096]).toEqual([true, true, true]);
    appendFileSync(fields.manifest, "half of a block");
    await next("8");
    rmSync(join(fields.source, "9"), { recursive: true });
    expect((await cell.ask("sync", { ...fields, dirty: ["."] })).number("removed")).toBe(21);
    expect(existsSync(join(fields.target, "9"))).toBe(false);
    const again = await cell.ask("compare", fields);
    expect([again.number("changed"), again.number("added"), again.number("removed")]).toEqual([0, 0, 0]);
    for (let round = 0; inode() === first && round < 1000; round++) await next(String(10 + (round % 100)));
    expect([inode() === first, size() < whole + 4096]).toEqual([false, true]);
    expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
  });

  test.each([9, 10])("makes layers that together show the tree, seed %i", async (seed) => {
    const fields = place();
    const folder = join(fields.target, "..");
    const merged = join(folder, "merged");
    const mutations = new Mutations(fields.source, seed);
    const options = { folderTimes: false, links: false };
    const layers: string[] = [join(folder, "tip")];
    mkdirSync(merged);
    for (let round = 1; round <= 20; round++) {
      for (let change = 0; change < 12; change++) mutations.change();
      const layer = join(folder, `layer${round}`);
      mkdirSync(layer);
      layers.unshift(layer);
      await cell.ask("sync", { ...fields, mode: "layer", target: layer });
      execFileSync("mount", ["-t", "overlay", "overlay", "-o", `ro,lowerdir=${layers.join(":")}`, merged]);
      try {
        expect(describeTree(merged, options)).toEqual(describeTree(fields.source, options));
      } finally {
        execFileSync("umount", ["--lazy", merged]);
      }
    }
  });

  test("compare lists exactly what was added, modified and deleted, and changes nothing", async () => {
    const fields = place();
    write(fields.source, { same: "1", edit: "1", "gone/deep/file": "1" });
    await cell.ask("sync", fields);
    const before = readFileSync(fields.manifest);
    write(fields.source, { edit: "22", "new/file": "1" });
    rmSync(join(fields.source, "gone"), { recursive: true });
    const reply = await cell.ask("compare", { source: fields.source, manifest: fields.manifest });
    const rows = reply
      .all("row")
      .map((row) => row.replace("\x1f", " "))
      .sort();
    expect(rows).toEqual(["A new", "A new/file", "D gone", "D gone/deep", "D gone/deep/file", "M edit"]);
    expect([reply.number("added"), reply.number("changed"), reply.number("removed")]).toEqual([2, 1, 3]);
    expect(readFileSync(fields.manifest)).toEqual(before);
  });

  test("skipped folders are made empty, and filled when they are skipped no more", async () => {
    const fields = place();
    write(fields.source, { "node_modules/a/b": "1", "src/x": "1" });
    await cell.ask("sync", { ...fields, skip: ["node_modules"] });
    expect(readdirSync(join(fields.target, "node_modules"))).toEqual([]);
    await cell.ask("sync", { ...fields, dirty: ["src"] });
    expect(readFileSync(join(fields.target, "node_modules/a/b"), "utf8")).toBe("1");
    await cell.ask("sync", { ...fields, skip: ["node_modules"], dirty: ["src"] });
    expect(readdirSync(join(fields.target, "node_modules"))).toEqual([]);
  });

  test("git hooks are left out at every depth, and configs are left to the server", async () => {
    const fields = { ...place(), git: 1 };
    write(fields.source, {
      ".git/HEAD": "ref",
      ".git/config": "token",
      ".git/hooks/pre-commit": "evil",
      ".git/refs/heads/hooks/topic": "1",
      ".git/modules/a/b/HEAD": "ref",
      ".git/modules/a/b/hooks/x": "evil",
      ".git/modules/a/b/config": "token",
      ".git/credentials": "secret",
      "nested/.git/HEAD": "ref",
      "nested/.git/hooks/x": "evil",
      "nested/.git/config": "token",
      "hooks/mine": "kept",
      config: "kept",
    });
    const reply = await cell.ask("sync", fields);
    const captured = execFileSync("find", [".", "-type", "f"], { cwd: fields.target, encoding: "utf8" }).trim().split("\n").sort();
    expect(captured).toEqual([
      "./.git/HEAD",
      "./.git/modules/a/b/HEAD",
      "./.git/refs/heads/hooks/topic",
      "./config",
      "./hooks/mine",
      "./nested/.git/HEAD",
    ]);
    expect(existsSync(join(fields.target, ".git/hooks"))).toBe(true);
    expect(reply.all("gitconfig").sort()).toEqual([".git/config", ".git/credentials", ".git/modules/a/b/config", "nested/.git/config"]);
    write(fields.target, { ".git/config": "clean" });
    write(fields.source, { ".git/hooks/post-commit": "evil", "nested/.git/config": "other token" });
    const second = await cell.ask("sync", { ...fields, dirty: [".git", ".git/hooks", "nested/.git"] });
    expect(readdirSync(join(fields.target, ".git/hooks"))).toEqual([]);
    expect(readFileSync(join(fields.target, ".git/config"), "utf8")).toBe("clean");
    expect([second.all("gitconfig"), second.all("gitconfig_same").sort()]).toEqual([
      ["nested/.git/config"],
      [".git/config", ".git/credentials"],
    ]);
  });

  test("files over the limit are reported and not copied, also when they grew over it", async () => {
    const fields = { ...place(), file_limit: 100 };
    write(fields.source, { small: "1", large: "1".repeat(200) });
    const first = await cell.ask("sync", fields);
    expect(first.all("big")).toEqual(["large\x1f200"]);
    expect(readdirSync(fields.target)).toEqual(["small"]);
    write(fields.source, { small: "1".repeat(300) });
    expect((await cell.ask("sync", fields)).all("big").sort()).toEqual(["large\x1f200", "small\x1f300"]);
    expect(readdirSync(fields.target)).toEqual([]);
  });

  test("holes and attributes are kept, special files left out and counted", async () => {
    const fields = place();
    execFileSync("sh", ["-c", "truncate -s 8M hole; printf end >> hole; : > attributed; mkfifo pipe"], { cwd: fields.source });
    spawnSync("setfattr", ["-n", "user.colour", "-v", "blue", "attributed"], { cwd: fields.source });
    const colour = (cwd: string): string | null =>
      spawnSync("getfattr", ["-n", "user.colour", "attributed"], { cwd, encoding: "utf8" }).stdout;
    const reply = await cell.ask("sync", fields);
    expect(reply.number("special")).toBe(1);
    expect(readdirSync(fields.target).sort()).toEqual(["attributed", "hole"]);
    expect(lstatSync(join(fields.target, "hole")).blocks).toBeLessThan(64);
    expect(describeTree(fields.target, FULL).length).toBe(3);
    expect(colour(fields.target)).toBe(colour(fields.source));
  });

  test("another file system mounted inside is reported and left out", async () => {
    const fields = place();
    write(fields.source, { "inner/hidden": "1" });
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(fields.source, "inner")]);
    try {
      writeFileSync(join(fields.source, "inner/foreign"), "1");
      expect((await cell.ask("sync", fields)).all("mount")).toEqual(["inner"]);
      expect(readdirSync(join(fields.target, "inner"))).toEqual([]);
    } finally {
      execFileSync("umount", ["--lazy", join(fields.source, "inner")]);
    }
  });

  test("links that lead outside are copied as links", async () => {
    const fields = place();
    symlinkSync("/etc", join(fields.source, "outside"));
    await cell.ask("sync", fields);
    expect(lstatSync(join(fields.target, "outside")).isSymbolicLink()).toBe(true);
  });

  test("a file that never rests is reported as torn and copied again", async () => {
    const fields = place();
    const path = join(fields.source, "log");
    execFileSync("dd", ["if=/dev/zero", `of=${path}`, "bs=1M", "count=96"], { stdio: "ignore" });
    // A process of its own: this one is busy with the others' tests at times.
    const writer = spawn("sh", ["-c", `echo began; while :; do echo line >>"$1"; done`, "sh", path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(writer.stdout, "data");
    const reply = await cell.ask("sync", fields).finally(() => writer.kill("SIGKILL"));
    await once(writer, "close");
    expect(reply.all("torn")).toEqual(["log"]);
    const calm = await cell.ask("sync", fields);
    expect([calm.all("torn"), calm.all("touched")]).toEqual([[], ["log"]]);
    expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
  });

  test("ignore rules that changed are said", async () => {
    const fields = place();
    write(fields.source, { "a/.gitignore": "x", b: "1" });
    expect((await cell.ask("sync", fields)).flag("ignore")).toBe(true);
    write(fields.source, { b: "22" });
    expect((await cell.ask("sync", fields)).flag("ignore")).toBe(false);
  });

  test("a sync that was killed in the middle is known as interrupted", async () => {
    const fields = place();
    execFileSync("sh", ["-c", "for d in $(seq 200); do mkdir d$d; for f in $(seq 30); do echo $d > d$d/$f; done; done"], {
      cwd: fields.source,
    });
    const running = cell.ask("sync", fields).catch((reason: unknown) => reason);
    const pid = await childAtWork(fields.manifest);
    process.kill(pid, "SIGKILL");
    expect(await running).toMatchObject({ code: "failed", step: "child" });
    expect(existsSync(`${fields.manifest}.dirty`)).toBe(true);
    await expect(cell.ask("sync", fields)).rejects.toMatchObject({ code: "failed", step: "interrupted" });
  });

  test("a tip from before the machine's last start is verified against its manifest", async () => {
    const fields = place();
    write(fields.source, { kept: "1", lost: "2", cut: "333", "folder/inner/file": "4" });
    await cell.ask("sync", fields);
    const bootOffset = 32;
    const manifest = readFileSync(fields.manifest);
    manifest.write("another start of the machine", bootOffset);
    writeFileSync(fields.manifest, manifest);
    rmSync(join(fields.target, "lost"));
    rmSync(join(fields.target, "folder"), { recursive: true });
    writeFileSync(join(fields.target, "cut"), "");
    const reply = await cell.ask("sync", { ...fields, dirty: ["."] });
    expect(reply.all("touched").sort()).toEqual(["cut", "folder/inner/file", "lost"]);
    expect(describeTree(fields.target, FULL)).toEqual(describeTree(fields.source, FULL));
    expect((await cell.ask("sync", fields)).number("changed")).toBe(0);
  });

  test("a damaged manifest is known as interrupted", async () => {
    const fields = place();
    await cell.ask("sync", fields);
    writeFileSync(fields.manifest, "nonsense that is long enough to hold a header, or so it should seem to the reader of it, at first");
    await expect(cell.ask("sync", fields)).rejects.toMatchObject({ step: "interrupted" });
  });

  test("a first sync refuses a target that is not empty", async () => {
    const fields = place();
    write(fields.target, { leftover: "1" });
    await expect(cell.ask("sync", fields)).rejects.toMatchObject({ code: "exists", step: "target" });
  });
});

/** The child of the helper that has begun to change the target. */
async function childAtWork(manifest: string): Promise<number> {
  const helper = cell.host.pid;
  while (!existsSync(`${manifest}.dirty`)) await new Promise(setImmediate);
  const children = readFileSync(`/proc/${helper}/task/${helper}/children`, "utf8").trim().split(" ");
  expect(children).toHaveLength(1);
  return Number(children[0]);
}
