import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Slots } from "../../src/machine/drivers/native/slots.ts";
import { aliasesOf, parseMounts } from "../../src/base/host/mounts.ts";

describe("slots of a volume", () => {
  let volume: string;
  beforeEach(() => {
    volume = mkdtempSync(join(tmpdir(), "viv-slots-"));
    for (let slot = 0; slot < 16; slot += 1) mkdirSync(join(volume, `live/${slot}/upper`), { recursive: true });
  });
  afterEach(() => rmSync(volume, { recursive: true, force: true }));

  const launch = (...paths: readonly string[]): (string | undefined)[] => {
    const slots = new Slots(volume, [0, 1]);
    const taken = paths.map((path) => slots.take(path));
    slots.save();
    return taken;
  };

  test("belong to the folder that had them first, whatever comes and goes", () => {
    expect(launch("/a", "/b")).toEqual(["@vol/live/2", "@vol/live/3"]);
    expect(launch("/b")).toEqual(["@vol/live/3"]);
    expect(launch("/c", "/b", "/a")).toEqual(["@vol/live/4", "@vol/live/3", "@vol/live/2"]);
  });

  test("of a volume that has no list yet keep the order of its launches, and an unclaimed slot stays alone", () => {
    for (const slot of [2, 3]) writeFileSync(join(volume, `live/${slot}/upper/file`), "");
    expect(launch("/a")).toEqual(["@vol/live/2"]);
    expect(launch("/b", "/a")).toEqual(["@vol/live/4", "@vol/live/2"]);
  });

  test("are given away once: who comes too late has none", () => {
    const paths = Array.from({ length: 14 }, (_, index) => `/${index}`);
    expect(launch(...paths).at(-1)).toBe("@vol/live/15");
    expect(launch("/late", ...paths)[0]).toBeUndefined();
  });
});

test("a folder is found wherever a mount shows it or what holds it", () => {
  const mounts = parseMounts(
    [
      "1 0 254:0 / / rw - ext4 /dev/a rw",
      "2 1 254:1 /@home /home rw - btrfs /dev/b rw",
      "3 1 254:1 / /pool rw - btrfs /dev/b rw",
      "4 1 254:1 /@home/me /export/me rw - btrfs /dev/b rw",
      "5 1 254:1 /@homeless /else rw - btrfs /dev/b rw",
      "6 1 254:0 /data/mail /var/mail rw - ext4 /dev/a rw",
    ].join("\n"),
  );
  expect(aliasesOf("/home/me/x", mounts)).toEqual(["/pool/@home/me/x", "/export/me/x"]);
  expect(aliasesOf("/home", mounts)).toEqual(["/pool/@home"]);
  expect(aliasesOf("/var/mail", mounts)).toEqual(["/data/mail"]);
  expect(aliasesOf("/etc", mounts)).toEqual([]);
});
