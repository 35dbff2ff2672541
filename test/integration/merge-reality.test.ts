/** PROM-2: changes of a sandbox merged with what moved in reality, on real storage. */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changesBetween, changeSetOf, gatherInto, type ChangeSet } from "../../src/machine/merge/change-set.ts";
import { GitStore } from "../../src/machine/merge/store.ts";
import { mergeSides } from "../../src/machine/merge/three-way.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { gatherWith } from "../../src/machine/volumes/gather.ts";
import { CaptureLab, requestFor } from "../support/capture-lab.ts";
import { memoryFolder } from "../support/folders.ts";
import { needs } from "../support/skip.ts";

/** Paths with what they are, from a real folder. */
function pathsOf(folder: string, below = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) for (const [inner, what] of pathsOf(folder, path)) found.set(inner, what);
    else if (entry.isFile()) found.set(path, (lstatSync(join(folder, path)).mode & 0o100) === 0 ? "100644" : "100755");
    else found.set(path, "120000");
  }
  return found;
}

function modes({ changes }: ChangeSet): string[] {
  return [...changes.values()].map(({ path, old, new: now }) => `${path.toString()} ${old?.mode ?? "-"} ${now?.mode ?? "-"}`).toSorted();
}

for (const storageName of ["btrfs", "plain"] as const) {
  describe(`PROM-2 a merge with reality on ${storageName}`, storageName === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let lab: CaptureLab;
    let store: GitStore;
    let temporary: string;

    beforeAll(async () => {
      lab = await CaptureLab.open(storageName, memoryFolder());
      temporary = mkdtempSync(join(tmpdir(), "viv-merge-"));
    });
    beforeEach(async () => {
      store = await GitStore.open(temporary);
    });
    afterAll(async () => {
      await lab?.close();
      rmSync(temporary, { recursive: true, force: true });
    });

    test("what lies between two bases is exact in both directions, however many lie between them", async () => {
      const { storage, host } = lab;
      const project = lab.folder();
      const request = requestFor(project);
      for (const name of ["a", "b", "c"]) writeFileSync(join(project, name), `${name}\n`);
      mkdirSync(join(project, "d"));
      writeFileSync(join(project, "d/e"), "e\n");
      const first = await lab.capture.base(request);
      const before = pathsOf(project);
      const steps = [
        () => writeFileSync(join(project, "a"), "other\n"),
        () => writeFileSync(join(project, "new"), "new\n"),
        () => rmSync(join(project, "b")),
        () => chmodSync(join(project, "c"), 0o755),
        () => renameSync(join(project, "d"), join(project, "f")),
        () => writeFileSync(join(project, "a"), "a\n"),
        () => symlinkSync("c", join(project, "link")),
        () => rmSync(join(project, "new")),
        () => writeFileSync(join(project, "late"), "late\n"),
        () => writeFileSync(join(project, "f/e"), "edited\n"),
        () => writeFileSync(join(project, "late"), "later\n"),
      ];
      for (const step of steps) {
        step();
        const now = await lab.capture.base(request);
        const after = pathsOf(project);
        const forth = await changesBetween(
          gatherWith(host),
          await GitStore.open(temporary),
          await storage.comparison.between(first.id, now.id),
        );
        const expected = [...new Set([...before.keys(), ...after.keys()])]
          .filter((path) => before.get(path) !== after.get(path) || (path === "a" && readFileSync(join(project, path), "utf8") !== "a\n"))
          .map((path) => `${path} ${before.get(path) ?? "-"} ${after.get(path) ?? "-"}`);
        expect(modes(forth)).toEqual(expected.toSorted());
        const back = await changesBetween(
          gatherWith(host),
          await GitStore.open(temporary),
          await storage.comparison.between(now.id, first.id),
        );
        expect(modes(back)).toEqual(expected.map((row) => row.replace(/(\S+) (\S+)$/, "$2 $1")).toSorted());
      }
    });

    test("both sides' changes come together, and where they meet there is a conflict", async () => {
      const { storage, host } = lab;
      const project = lab.folder();
      const lines = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
      mkdirSync(join(project, "src"));
      for (const name of ["both", "clash", "src/moved", "src/stays", "gone"]) writeFileSync(join(project, name), lines.join(""));
      const base = await lab.capture.base(requestFor(project));
      const request = requestFor(project, { project: base.project });
      const volume = newId("sandbox");
      const { folder } = await storage.disks.create(volume, { base: base.id, project: base.project }, 64 * 1024 ** 2);
      const inside = storage.capabilities.roots === "direct" ? join(folder, "roots/0") : join(folder, "roots/0/upper");
      writeFileSync(join(inside, "both"), ["inside\n", ...lines].join(""));
      writeFileSync(join(inside, "clash"), "inside\n");
      writeFileSync(join(inside, "added"), "inside\n");
      writeFileSync(join(project, "both"), [...lines, "outside\n"].join(""));
      writeFileSync(join(project, "clash"), "outside\n");
      renameSync(join(project, "src/moved"), join(project, "other"));
      rmSync(join(project, "gone"));
      const now = await lab.capture.base(request);
      const gather = gatherWith(host);
      const sides = await storage.comparison.sides({ volume }, base.id);
      const ours = { label: "sandbox", changes: changeSetOf(await gatherInto(store, gather, sides, "sandbox")) };
      const theirs = { label: "reality", changes: await changesBetween(gather, store, await storage.comparison.between(base.id, now.id)) };
      const { changes, conflicts } = await mergeSides(store, ours, theirs);
      const text = async (path: string): Promise<string> => {
        const id = changes.find((change) => change.path.toString() === path)?.new?.id;
        return id === undefined ? "gone" : (await store.git(["cat-file", "blob", id])).stdout.toString();
      };
      expect(changes.map(({ path }) => path.toString()).toSorted()).toEqual(["both", "clash", "gone", "other", "src/moved"]);
      expect(await text("both")).toBe(["inside\n", ...lines, "outside\n"].join(""));
      expect(await text("clash")).toBe("<<<<<<< sandbox\ninside\n=======\noutside\n>>>>>>> reality\n");
      expect(await text("gone")).toBe("gone");
      expect(conflicts.map(({ kind, paths }) => `${kind} ${paths.join()}`)).toEqual(["content clash"]);
      await storage.disks.remove(volume);
    });
  });
}
