/** What the files of every driver's sandboxes do. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { FileChange } from "../../src/base/schema/files.ts";
import type { FileStep } from "../../src/machine/drivers/drivers.ts";
import { type Box, type DriverLab, type Heard, type Tried, USER } from "./driver-lab.ts";

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

export function filesContract(tried: () => Tried): void {
  let lab: DriverLab;
  let box: Box;
  beforeAll(() => {
    ({ lab, box } = tried());
  });
  const run = (line: string): Promise<Heard> => lab.run(box, line);

  describe("files", () => {
    const inProject = (file: string): string => join(lab.project, file);
    const text = async (file: string): Promise<string> => {
      const { body } = await box.walls.files.read(inProject(file), USER);
      return Buffer.concat(await body.toArray()).toString();
    };
    const put = (file: string, content: string, options = {}) => box.walls.files.write(inProject(file), USER, bytes(content), options);

    test("are written, read, listed, moved and removed in the sandbox alone", async () => {
      const { files } = box.walls;
      await expect(put("f/new.txt", "hello")).rejects.toMatchObject({ code: "file_not_found" });
      await put("f/new.txt", "hello", { parents: true, mode: 0o640 });
      expect(await text("f/new.txt")).toBe("hello");
      expect((await run("cat f/new.txt")).stdout).toBe("hello");
      expect(await files.stat(inProject("f/new.txt"), USER)).toMatchObject({ path: ".", type: "file", size: 5, mode: "640" });
      await files.mkdir(inProject("f/deep/er"), USER, true);
      const found = await files.list(inProject("f"), USER, 9, 100);
      expect(found.map(({ path, type }) => `${path} ${type}`).toSorted()).toEqual(["deep dir", "deep/er dir", "new.txt file"]);
      expect(await files.list(inProject("f"), USER, 9, 2)).toHaveLength(2);
      await put("f/other.txt", "other");
      await expect(files.move(inProject("f/new.txt"), inProject("f/other.txt"), USER, false)).rejects.toMatchObject({ code: "exists" });
      await files.move(inProject("f/new.txt"), inProject("f/other.txt"), USER, true);
      expect(await text("f/other.txt")).toBe("hello");
      await expect(files.remove(inProject("f"), USER, false)).rejects.toMatchObject({ code: "invalid_input" });
      await files.remove(inProject("f"), USER, true);
      await expect(files.stat(inProject("f"), USER)).rejects.toMatchObject({ code: "file_not_found" });
      expect(existsSync(inProject("f"))).toBe(false);
    });

    test("are read in part", async () => {
      const part = async (offset: number, length: number): Promise<string> => {
        const { body } = await box.walls.files.read(inProject("src/main.js"), USER, { offset, length });
        return Buffer.concat(await body.toArray()).toString();
      };
      expect([await part(8, 3), await part(8, 0)]).toEqual(["log", ""]);
    });

    test("a write that breaks off changes nothing and leaves nothing", async () => {
      await put("whole", "before");
      const before = (await run("ls -A")).stdout;
      const broken = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.from("half");
        throw new Error("the caller went away");
      };
      await expect(box.walls.files.write(inProject("whole"), USER, broken(), {})).rejects.toThrow("went away");
      expect(await text("whole")).toBe("before");
      expect((await run("ls -A")).stdout).toBe(before);
    });

    test("a tree is changed step by step, and never through a link", async () => {
      await run("mkdir tree outside; echo old > tree/old; ln -s ../outside tree/link");
      const steps = async function* (...all: FileStep[]): AsyncGenerator<FileStep> {
        yield* all;
      };
      await box.walls.files.apply(
        inProject("tree"),
        USER,
        steps(
          { do: "remove", path: "old" },
          { do: "file", path: "new/program", executable: true, body: bytes("x") },
          { do: "link", path: "to-new", target: "new" },
          { do: "folder", path: "empty" },
          { do: "prune", path: "empty" },
        ),
      );
      expect((await run("cd tree; ls; test -x new/program && readlink to-new")).stdout).toBe("link\nnew\nto-new\nnew\n");
      const through = steps({ do: "file", path: "link/file", executable: false, body: bytes("x") });
      await box.walls.files.apply(inProject("tree"), USER, through).catch(() => undefined);
      expect((await run("ls outside")).stdout).toBe("");
    });

    test("are watched", async () => {
      const abort = new AbortController();
      const seen: FileChange[] = [];
      await run("mkdir -p watched/inner");
      const watching = (async () => {
        for await (const change of box.walls.files.watch(inProject("watched"), USER, true, abort.signal)) seen.push(change);
      })();
      // The watch has begun when it tells of something.
      await expect.poll(async () => (await run("date > watched/ping"), seen.length)).toBeGreaterThan(0);
      await run("echo 1 > watched/inner/new");
      await expect.poll(() => seen).toContainEqual({ change: "created", path: "inner/new" });
      await run("rm watched/inner/new");
      await expect.poll(() => seen).toContainEqual({ change: "removed", path: "inner/new" });
      abort.abort();
      await watching;
    });
  });
}
