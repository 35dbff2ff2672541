import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import type { LaterBases } from "../../src/machine/volumes/bases.ts";
import type { Storage } from "../../src/machine/volumes/volumes.ts";
import { makeStorage, type StorageLab } from "../support/storage.ts";
import { needs } from "../support/skip.ts";

const MIB = 1024 ** 2;

describe("a base that is frozen behind the answer", needs("root", "btrfs"), () => {
  let lab: StorageLab;
  const project = newId("project");

  beforeAll(async () => {
    lab = await makeStorage("btrfs");
  });
  afterAll(async () => lab?.remove());

  const laterOf = ({ bases }: Storage): LaterBases => {
    if (bases.later === undefined) throw new Error("btrfs freezes behind the answer");
    return bases.later;
  };
  const write = async (text: string, storage = lab.storage): Promise<void> => {
    const { folder } = await storage.bases.openTip(project, false);
    mkdirSync(join(folder, "roots/0"), { recursive: true });
    writeFileSync(join(folder, "roots/0/file"), text);
  };
  const notes = (kind: string): string[] => readdirSync(join(lab.home, "pool/freezing", kind));
  const textIn = (base: string): string => readFileSync(join(lab.home, "pool/bases", base, "roots/0/file"), "utf8");

  /** A base, a volume of it, and a change of the tip that was brought into that: its base is under way. */
  async function begin(storage = lab.storage): Promise<{ first: string; base: string; volume: string }> {
    const [first, base, volume] = [newId("base"), newId("base"), newId("sandbox")];
    await write("first", storage);
    await storage.bases.freeze(project, first);
    await storage.disks.create(volume, { base: first, project }, 100 * MIB);
    await write("second", storage);
    // It comes when it is asked for alone: a test may be slow.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    await laterOf(storage).freeze(project, base, { volume, from: first });
    vi.useRealTimers();
    expect([notes("bases").includes(base), notes("tips"), existsSync(join(lab.home, "pool/bases", base))]).toEqual([
      true,
      [project],
      false,
    ]);
    return { first, base, volume };
  }

  test("is there for whatever asks for it, and the tip does not change before", async () => {
    const { base, volume, first } = await begin();
    expect(laterOf(lab.storage).knows(base)).toBe(true);
    await write("third");
    expect(textIn(base)).toBe("second");
    await lab.storage.bases.remove(first);
    const { origin } = await lab.storage.comparison.sides({ volume }, base);
    expect(readFileSync(origin ?? "", "utf8")).toMatch(/^[0-9a-f]{32} \d+ [0-9a-f]{32}\n$/);
    const [{ base: other }, next] = [await begin(), newId("sandbox")];
    await lab.storage.disks.create(next, { base: other, project }, 100 * MIB);
    expect(readFileSync(join(lab.home, "pool/volumes", next, "roots/0/file"), "utf8")).toBe("second");
  });

  test("that could not be frozen is tried again when it is asked for, and is not in the way of its removal", async () => {
    const { base, volume } = await begin();
    const [tip, aside] = [join(lab.home, "pool/tips", project), join(lab.home, "pool/aside")];
    renameSync(tip, aside);
    await expect(lab.storage.comparison.sides({ volume }, base)).rejects.toMatchObject({ code: "not_found" });
    await expect(lab.storage.bases.openTip(project, false)).rejects.toMatchObject({ code: "not_found" });
    renameSync(aside, tip);
    expect(laterOf(lab.storage).knows(base)).toBe(true);
    await lab.storage.comparison.sides({ volume }, base);
    expect(textIn(base)).toBe("second");
    const other = await begin();
    await lab.storage.bases.remove(other.base);
    expect([laterOf(lab.storage).knows(other.base), notes("bases").includes(other.base)]).toEqual([false, false]);
    await write("after");
  });

  test("is frozen by the next server after a kill", async () => {
    const { base, volume } = await begin();
    const next = await lab.reopen();
    expect([textIn(base), laterOf(next).knows(base), laterOf(next).hasLost(volume)]).toEqual(["second", true, false]);
    await next.close(false);
    expect(notes("bases")).toEqual([]);
    await lab.storage.bases.manifests(base);
  });

  test("is lost with its volume and the tip after a failure of the machine", async () => {
    const { base, volume } = await begin();
    for (const [kind, name] of [
      ["bases", base],
      ["tips", project],
    ] as const) {
      const note = join(lab.home, "pool/freezing", kind, name);
      const said = readlinkSync(note).split(" ");
      unlinkSync(note);
      symlinkSync(["another", ...said.slice(1)].join(" "), note);
    }
    const next = await lab.reopen();
    expect([laterOf(next).knows(base), laterOf(next).hasLost(volume)]).toEqual([false, true]);
    expect(existsSync(join(lab.home, "pool/tips", project))).toBe(false);
    expect([notes("bases"), notes("tips")]).toEqual([[], []]);
    await lab.storage.bases.remove(base);
  });

  test("is lost in the same way where a stopped pool was mounted anew", async () => {
    const { base, volume } = await begin();
    writeFileSync(join(lab.home, "pool.img.mending"), "");
    const next = await lab.reopen();
    expect([laterOf(next).knows(base), laterOf(next).hasLost(volume), existsSync(join(lab.home, "pool.img.mending"))]).toEqual([
      false,
      true,
      false,
    ]);
    await lab.storage.bases.remove(base);
  });
});
