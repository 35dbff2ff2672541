/** A merged change written into a sandbox through process 1, and into an unwalled copy in the same way. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { FileOperations, FileStep } from "../../src/machine/drivers/drivers.ts";
import { FolderFiles } from "../../src/machine/drivers/folder/files.ts";
import { CopyPaths } from "../../src/machine/drivers/folder/paths.ts";
import type { MergedChange } from "../../src/machine/merge/three-way.ts";
import { applyInside, FOLDER } from "../../src/sandbox/files/apply-inside.ts";
import { CellProcess } from "../support/cell-process.ts";
import { keepContent } from "../support/contents.ts";
import { needs } from "../support/skip.ts";

const FILE = "100644";
const EXECUTABLE = "100755";
const LINK = "120000";

async function* one(step: FileStep): AsyncGenerator<FileStep> {
  yield step;
}

for (const driver of ["native", "folder"] as const) {
  describe(`a merged change inside, ${driver}`, needs("linux", "root", "compiler"), () => {
    let cell: CellProcess | undefined;
    let place: string;
    let project: string;
    let contents: string;
    let files: FileOperations;

    beforeAll(async () => {
      if (driver === "native") cell = await new CellProcess().start();
    }, 60_000);
    afterAll(async () => {
      await cell?.remove();
      expect(cell?.complaints ?? "").toBe("");
    });
    beforeEach(() => {
      place = mkdtempSync(join(cell?.folder ?? tmpdir(), "viv-apply-"));
      if (cell !== undefined) chmodSync(cell.folder, 0o755);
      chmodSync(place, 0o755);
      project = join(place, "project");
      contents = join(place, "contents");
      for (const folder of [project, contents]) mkdirSync(folder);
      files = cell?.client.files ?? new FolderFiles(new CopyPaths(project, "/nowhere"), () => undefined);
      return () => rmSync(place, { recursive: true, force: true });
    });

    let made = 0;
    const to = (path: string | Buffer, mode: string, content: string | Buffer): MergedChange => {
      made += 1;
      const id = made.toString(16).padStart(40, "0");
      keepContent(contents, id, Buffer.from(content as string));
      return { path: Buffer.from(path), old: null, new: { mode, id } };
    };
    const gone = (path: string): MergedChange => ({ path: Buffer.from(path), old: null, new: null });
    const apply = (...changes: MergedChange[]): Promise<string[]> => applyInside(files, project, "root", changes, contents);
    const text = (path: string): string => readFileSync(join(project, path), "utf8");

    test("brings files, links and the executable bit, makes folders and takes emptied ones away", async () => {
      mkdirSync(join(project, "old/deep/er"), { recursive: true });
      mkdirSync(join(project, "kept"));
      for (const path of ["old/deep/er/file", "kept/file", "kept/other", "plain", "tool"]) writeFileSync(join(project, path), "before\n");
      chmodSync(join(project, "tool"), 0o750);
      chmodSync(join(project, "plain"), 0o640);
      chownSync(join(project, "plain"), 1234, 1235);
      const large = Buffer.alloc(1_000_000, "0123456789");
      await apply(
        gone("old/deep/er/file"),
        gone("kept/file"),
        gone("never/was"),
        to("plain", EXECUTABLE, "after\n"),
        to("tool", FILE, "after\n"),
        to("new/folder/file", FILE, "new\n"),
        to("new/run", EXECUTABLE, "#!/bin/sh\n"),
        to("new/link", LINK, "../plain"),
        to("large", FILE, large),
        to("empty", FILE, ""),
      );
      expect(readdirSync(project).toSorted()).toEqual(["empty", "kept", "large", "new", "plain", "tool"]);
      expect(readdirSync(join(project, "kept"))).toEqual(["other"]);
      expect([text("plain"), text("tool"), text("new/folder/file"), text("empty")]).toEqual(["after\n", "after\n", "new\n", ""]);
      expect(readFileSync(join(project, "large")).equals(large)).toBe(true);
      const modes = ["plain", "tool", "new/folder/file", "new/run"].map((path) => (statSync(join(project, path)).mode & 0o777).toString(8));
      expect(modes).toEqual(["750", "640", "644", "755"]);
      expect(readlinkSync(join(project, "new/link"))).toBe("../plain");
    });

    test("files, folders and links take each other's place", async () => {
      for (const folder of ["a", "b", "d/inner"]) mkdirSync(join(project, folder), { recursive: true });
      for (const path of ["a/x", "b/x", "c", "d/inner/x", "f"]) writeFileSync(join(project, path), "before\n");
      symlinkSync("c", join(project, "e"));
      symlinkSync("a", join(project, "g"));
      await apply(
        ...["a/x", "b/x", "c", "d/inner/x", "e", "g"].map(gone),
        to("a", FILE, "a file\n"),
        to("b", LINK, "target"),
        to("c/x", FILE, "in a folder\n"),
        to("d", FILE, "a file\n"),
        to("e", FILE, "no link\n"),
        to("f", LINK, "c"),
        to("g/x", FILE, "in a folder\n"),
      );
      expect([text("a"), text("c/x"), text("d"), text("e"), text("g/x")]).toEqual([
        "a file\n",
        "in a folder\n",
        "a file\n",
        "no link\n",
        "in a folder\n",
      ]);
      expect([readlinkSync(join(project, "b")), readlinkSync(join(project, "f"))]).toEqual(["target", "c"]);
    });

    test("empty folders come and go, and where something else stands it stays", async () => {
      for (const folder of ["empty", "full"]) mkdirSync(join(project, folder));
      for (const path of ["full/file", "file"]) writeFileSync(join(project, path), "before\n");
      symlinkSync("/etc", join(project, "link"));
      const folder = { mode: FOLDER, id: "" };
      const comes = (path: string): MergedChange => ({ path: Buffer.from(path), old: null, new: folder });
      const goes = (path: string): MergedChange => ({ path: Buffer.from(path), old: folder, new: null });
      await apply(goes("empty"), goes("full"), goes("file"), ...["new/deep", "full", "file", "file/below", "link/viv-apply"].map(comes));
      expect(readdirSync(project).toSorted()).toEqual(["file", "full", "link", "new"]);
      expect([text("file"), text("full/file"), ...readdirSync(join(project, "new"))]).toEqual(["before\n", "before\n", "deep"]);
      expect(existsSync("/etc/viv-apply")).toBe(false);
    });

    test("names and targets may be any bytes", async () => {
      const name = Buffer.from([0x66, 0xff, 0xfe, 0x0a, 0x22, 0x5c, 0xc3]);
      const target = Buffer.from([0x2f, 0xfd, 0x20]);
      await apply(to(name, FILE, "odd\n"), to(Buffer.concat([name, Buffer.from("-link")]), LINK, target));
      const at = (end: string): Buffer => Buffer.concat([Buffer.from(`${project}/`), name, Buffer.from(end)]);
      expect(readFileSync(at(""), "utf8")).toBe("odd\n");
      expect(readlinkSync(at("-link"), { encoding: "buffer" })).toEqual(target);
    });

    test("no link on the way is followed, and no path leads out", async () => {
      const outside = join(place, "outside");
      mkdirSync(outside);
      writeFileSync(join(outside, "file"), "theirs\n");
      symlinkSync(outside, join(project, "way"));
      await expect(apply(to("way/file", FILE, "mine\n"))).rejects.toMatchObject({ code: "invalid_input" });
      await expect(apply(to("way/new/file", FILE, "mine\n"))).rejects.toMatchObject({ code: "invalid_input" });
      await apply(gone("way/file"));
      for (const path of ["../outside/file", "a/../../outside/file", "/etc/viv-apply", "a//b", ".", "a/."]) {
        await expect(apply(to(path, FILE, "mine\n")), path).rejects.toMatchObject({ code: "invalid_input" });
        await expect(files.apply(project, "root", one({ do: "remove", path })), path).rejects.toMatchObject({ code: "invalid_input" });
      }
      expect(readdirSync(outside)).toEqual(["file"]);
      expect(readFileSync(join(outside, "file"), "utf8")).toBe("theirs\n");
      expect(lstatSync(join(project, "way")).isSymbolicLink()).toBe(true);
      // A program that does not look follows the same link.
      writeFileSync(join(project, "way/file"), "mine\n");
      expect(readFileSync(join(outside, "file"), "utf8")).toBe("mine\n");
    });

    test("a stream that breaks off leaves whole files alone and nothing half-written", async () => {
      writeFileSync(join(project, "one"), "before\n");
      async function* broken(): AsyncGenerator<FileStep> {
        yield { do: "file", path: "two", executable: false, body: (async function* () {})() };
        yield {
          do: "file",
          path: "one",
          executable: false,
          body: (async function* () {
            yield Buffer.alloc(200_000);
            throw new Error("ended");
          })(),
        };
      }
      await expect(files.apply(project, "root", broken())).rejects.toThrow("ended");
      await expect.poll(() => readdirSync(project).toSorted()).toEqual(["one", "two"]);
      expect(text("one")).toBe("before\n");
    });

    test("what changed after the time given is left alone and told, and what did not is replaced", async () => {
      for (const folder of ["d", "e"]) mkdirSync(join(project, folder));
      for (const path of ["early", "late", "gone", "late-gone", "d/early", "e/early"]) writeFileSync(join(project, path), "before\n");
      // The clock of the file system goes in steps: what is early must be so by all of them.
      const written = Math.max(...["early", "e/early"].map((path) => statSync(join(project, path)).ctimeMs));
      await expect.poll(() => Date.now()).toBeGreaterThan(written + 20);
      const since = Date.now();
      await expect
        .poll(() => {
          for (const path of ["late", "late-gone", "e/late"]) writeFileSync(join(project, path), "theirs\n");
          return statSync(join(project, "late")).ctimeMs > since;
        })
        .toBe(true);
      const changes = [
        ...["gone", "late-gone", "d/early", "e/early"].map(gone),
        to("early", FILE, "mine\n"),
        to("late", FILE, "mine\n"),
        to("new", FILE, "mine\n"),
        to("d", FILE, "mine\n"),
        to("e", FILE, "mine\n"),
      ];
      expect((await applyInside(files, project, "root", changes, contents, since)).toSorted()).toEqual(["e", "late", "late-gone"]);
      expect(["early", "late", "new", "d", "late-gone", "e/late"].map(text)).toEqual([
        "mine\n",
        "theirs\n",
        "mine\n",
        "mine\n",
        "theirs\n",
        "theirs\n",
      ]);
      expect(readdirSync(project).toSorted()).toEqual(["d", "e", "early", "late", "late-gone", "new"]);
    });

    const many = driver === "native" ? 5_000 : 500;
    test(`${many} files go in one stream, and away again`, async () => {
      const changes = Array.from({ length: many }, (_, index) => to(`d${index % 50}/f${index}`, FILE, `content ${index}\n`));
      await apply(...changes);
      expect(text("d7/f457")).toBe("content 457\n");
      await apply(...changes.map(({ path }) => gone(path.toString())));
      expect(readdirSync(project)).toEqual([]);
    });

    test.for(driver === "native" ? [driver] : [])(
      "the user's rights apply, and what root writes belongs to whom its place belongs",
      async () => {
        const change = to("file", FILE, "mine\n");
        await expect(applyInside(files, project, "nobody", [change], contents)).rejects.toMatchObject({ code: "denied" });
        expect(existsSync(join(project, "file"))).toBe(false);
        chmodSync(project, 0o777);
        await applyInside(files, project, "nobody", [change], contents);
        expect(statSync(join(project, "file")).uid).toBe(65534);
        chownSync(project, 1234, 1235);
        await apply(to("new/deep", FILE, "new\n"), to("link", LINK, "new"), to("file", FILE, "other\n"));
        const owners = ["new", "new/deep", "link", "file"].map((path) => lstatSync(join(project, path)).uid);
        expect(owners).toEqual([1234, 1234, 1234, 65534]);
      },
    );
  });
}
