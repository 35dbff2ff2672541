/** PROM-2: contents come out of a store as they went in. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { withContents, writeContents } from "../../src/machine/merge/contents.ts";
import { GatheredContents } from "../../src/machine/merge/gathered-contents.ts";
import { GitStore } from "../../src/machine/merge/store.ts";

test("contents of a store are written byte for byte, each once, and a missing one is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-merge-"));
  const store = await GitStore.open(folder);
  try {
    const large = Buffer.alloc(3 * 1024 ** 2, "0123456789abcdef blob 5\n");
    const contents = ["", "\n", "a", "a\n", "two\n\n", "\0\u00ff", "x".repeat(65_536)].map((text) => Buffer.from(text, "latin1"));
    const all = [...contents, large];
    const blobs = all.map((content, index) =>
      Buffer.concat([Buffer.from(`blob\nmark :${index + 1}\ndata ${content.length}\n`), content, Buffer.from("\n")]),
    );
    writeFileSync(join(folder, "blobs"), Buffer.concat(blobs));
    const { contents: ids } = await store.write([], join(folder, "blobs"));
    const out = await store.place("out");
    await writeContents(store, [...ids.values(), ...ids.values()], out);
    const more = await store.git(["hash-object", "-w", "--stdin"], { input: [Buffer.from("more")] });
    await writeContents(store, [more.stdout.toString().trim()], out);
    await withContents(out, (held) => {
      expect(held.read(more.stdout.toString().trim()).toString()).toBe("more");
      for (const [mark, id] of ids) {
        const content = all[mark - 1] ?? Buffer.alloc(0);
        expect(held.sizeOf(id)).toBe(content.length);
        expect(held.read(id).equals(content)).toBe(true);
        expect(Buffer.concat([...held.parts(id)]).equals(content)).toBe(true);
      }
      expect(held.has("0".repeat(40))).toBe(false);
      expect(() => held.read("0".repeat(40))).toThrow("not kept");
    });
    expect(readFileSync(join(out, "index"), "utf8").trim().split("\n")).toHaveLength(all.length + 1);
    await expect(writeContents(store, ["0".repeat(40)], await store.place("none"))).rejects.toMatchObject({ code: "internal" });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("contents that were gathered have git's ids, become a folder's contents as they lie, and can be stored before that", async () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-merge-"));
  const store = await GitStore.open(folder);
  try {
    const texts = ["", "\n", "a", "blob\nmark :9\ndata 3\n", "a", "\0\u00ff", "x".repeat(3 * 1024 ** 2)];
    const all = texts.map((text) => Buffer.from(text, "latin1"));
    const blobs = all.map((content, index) =>
      Buffer.concat([Buffer.from(`blob\nmark :${index + 1}\ndata ${content.length}\n`), content, Buffer.from("\n")]),
    );
    const file = join(folder, "blobs");
    const complete = Promise.withResolvers<undefined>();
    const reading = GatheredContents.read(file, complete.promise);
    const stream = Buffer.concat(blobs);
    // In pieces that end in the middle of lines and contents.
    for (const [from, to] of [
      [0, 7],
      [7, 40],
      [40, 41],
      [41, stream.length],
    ]) {
      appendFileSync(file, stream.subarray(from, to));
      await setTimeout(10);
    }
    complete.resolve(undefined);
    const gathered = await reading;
    await gathered.store(store);
    await gathered.store(store);
    const out = await store.place("out");
    await gathered.moveTo(out);
    for (const [mark, id] of gathered.ids) {
      const content = all[mark - 1] ?? Buffer.alloc(0);
      expect((await store.git(["cat-file", "blob", id])).stdout.equals(content)).toBe(true);
      await withContents(out, (held) => expect(held.read(id).equals(content)).toBe(true));
    }
    expect([gathered.ids.size, gathered.has("0".repeat(40))]).toEqual([all.length, false]);
    expect(gathered.ids.get(3)).toBe(gathered.ids.get(5));
    const none = await GatheredContents.read(join(folder, "none"), Promise.resolve());
    await none.store(store);
    await none.moveTo(await store.place("nothing"));
    writeFileSync(join(folder, "odd"), "commit refs/heads/main\n");
    await expect(GatheredContents.read(join(folder, "odd"), Promise.resolve())).rejects.toMatchObject({ code: "internal" });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
