import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { needs } from "../../../test/support/skip.ts";
import { Registry } from "../../sandbox/shared/registry.ts";
import { LIMITS } from "../schema/limits.ts";
import { IdRanges } from "./id-ranges.ts";
import { StateFolder } from "./state-folder.ts";

describe("ranges of ids of servers on one machine", () => {
  const place = mkdtempSync(join(tmpdir(), "viv-ranges-"));
  const notes = join(place, "notes");
  afterAll(() => rmSync(place, { recursive: true }));
  const folder = (name: string): { owner: string; home: string } => {
    const home = join(place, name);
    mkdirSync(home, { recursive: true });
    const opened = StateFolder.open(home);
    opened.close();
    return { owner: opened.id, home };
  };
  const registryOf = (name: string, isFree = (range: number): boolean => range !== 1): Registry =>
    new Registry(new IdRanges({ ...folder(name), isFree, shared: true, notes }));

  test("F-53: are never the same for two servers; a server gives back what none of its sandboxes has when it ends", () => {
    const [left, right] = [registryOf("left"), registryOf("right")];
    const [first, second, third] = [left.reserve(), right.reserve(), left.reserve()];
    expect([first.range, second.range, third.range]).toEqual([0, 2, 3]);
    left.release(first);
    expect(left.reserve().range).toBe(0);
    left.release(first);
    left.close();
    expect(right.reserve().range).toBe(0);
  });

  test("F-53: of a server that was killed are its own again, without those that no sandbox has", () => {
    const again = registryOf("left");
    again.register([]);
    expect(
      readdirSync(notes)
        .filter((name) => !name.startsWith("."))
        .toSorted(),
    ).toEqual(["0", "2"]);
    expect(again.reserve().range).toBe(3);
  });

  test("F-53: of a folder that is gone are free again, unless a process has them", needs("root"), async () => {
    // Far from those that sandboxes of this machine have.
    const gone = registryOf("gone", (range) => range > 30_000);
    const [used, unused] = [gone.reserve().range, gone.reserve().range];
    const first = LIMITS.uidRangeStart + used * LIMITS.uidRangeSize;
    const child = spawn("unshare", ["--user", "sleep", "1000"]);
    await once(child, "spawn");
    const isApart = (): boolean => readlinkSync(`/proc/${child.pid}/ns/user`) !== readlinkSync("/proc/self/ns/user");
    await expect.poll(isApart).toBe(true);
    writeFileSync(`/proc/${child.pid}/uid_map`, `0 ${first} 10`);
    rmSync(join(place, "gone"), { recursive: true });
    registryOf("left").register([]);
    expect(readdirSync(notes).map(Number)).toContain(used);
    expect(readdirSync(notes).map(Number)).not.toContain(unused);
    child.kill("SIGKILL");
    await once(child, "exit");
    registryOf("left").register([]);
    expect(readdirSync(notes).map(Number)).not.toContain(used);
  });

  test("F-53: are never taken twice while several servers take, give back and clear the same ones", async () => {
    const crowd = join(place, "crowd");
    mkdirSync(join(crowd, "held"), { recursive: true });
    const program = join(import.meta.dirname, "../../../test/support/range-taker.ts");
    const ends = ["a", "b", "c", "d"].map(async (name) => {
      const { owner, home } = folder(name);
      const taker = spawn(process.execPath, [program, crowd, owner, home], { stdio: ["ignore", "pipe", "inherit"] });
      let said = "";
      taker.stdout.on("data", (data: Buffer) => (said += data.toString()));
      const [exit] = (await once(taker, "close")) as [number];
      return { exit, twice: Number(said.split(" ")[0]), taken: Number(said.split(" ")[1]) };
    });
    const all = await Promise.all(ends);
    expect(all.map(({ exit, twice }) => [exit, twice])).toEqual(all.map(() => [0, 0]));
    expect(Math.min(...all.map(({ taken }) => taken))).toBeGreaterThan(5);
  });

  test("are not shared out where every server has only one id to give", () => {
    const alone = new IdRanges({ ...folder("user"), isFree: () => true, shared: false, notes });
    expect(alone.take(0)).toBe(true);
  });
});
