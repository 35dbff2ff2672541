/** PROM-2: contents come out of a store as they went in. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withContents, writeContents } from "../../src/machine/merge/contents.ts";
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
