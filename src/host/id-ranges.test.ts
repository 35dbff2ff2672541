import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Registry } from "../sandbox/registry.ts";
import { IdRanges } from "./id-ranges.ts";

describe("ranges of ids of servers on one machine", () => {
  const notes = join(mkdtempSync(join(tmpdir(), "viv-ranges-")), "notes");
  afterAll(() => rmSync(join(notes, ".."), { recursive: true }));
  const registryOf = (owner: string): Registry =>
    new Registry(new IdRanges({ owner, isFree: (range) => range !== 1, shared: true, notes }));

  test("F-53: are never the same for two servers, and are free again when their sandbox is gone", () => {
    const [left, right] = [registryOf("left"), registryOf("right")];
    const [first, second, third] = [left.reserve(), right.reserve(), left.reserve()];
    expect([first.range, second.range, third.range]).toEqual([0, 2, 3]);
    left.release(first);
    expect(right.reserve().range).toBe(0);
  });

  test("F-53: of a server that was killed are its own again, without those that no sandbox has", () => {
    const again = registryOf("left");
    again.register([]);
    expect(readdirSync(notes).toSorted()).toEqual(["0", "2"]);
    expect(again.reserve().range).toBe(3);
  });

  test("are not shared out where every server has only one id to give", () => {
    const alone = new IdRanges({ owner: "user", isFree: () => true, shared: false, notes });
    expect(alone.take(0)).toBe(true);
  });
});
