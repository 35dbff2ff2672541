import { duplexPair, type Duplex } from "node:stream";
import { inflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { keysOfChord, keysOfText } from "../../src/sandbox/desktop/keysyms.ts";
import { encodePng } from "../../src/sandbox/desktop/png.ts";
import { Rfb } from "../../src/sandbox/desktop/rfb.ts";

const soon = (): AbortSignal => AbortSignal.timeout(5_000);

/** What a screen of 4 by 2 pixels says first. */
function greeting({ version = "RFB 003.008\n", security = [1, 1], width = 4, height = 2 } = {}): Buffer {
  const initial = Buffer.alloc(24);
  initial.writeUInt16BE(width, 0);
  initial.writeUInt16BE(height, 2);
  return Buffer.concat([Buffer.from(version), Buffer.from(security), Buffer.alloc(4), initial]);
}

function rectangle(x: number, y: number, width: number, height: number, encoding: number, data: Buffer = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(12);
  for (const [at, value] of [x, y, width, height].entries()) header.writeUInt16BE(value, at * 2);
  header.writeInt32BE(encoding, 8);
  return Buffer.concat([header, data]);
}

/** What tells the size, and that there is one screen. */
function sized(width: number, height: number, { why = 0, status = 0 } = {}): Buffer {
  const screens = Buffer.alloc(4 + 16);
  screens.writeUInt8(1, 0);
  return rectangle(why, status, width, height, -308, screens);
}

function update(...rectangles: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, rectangles.length]), ...rectangles]);
}

const pixels = (count: number, value: number): Buffer => Buffer.alloc(count * 4, value);

async function opened(said: Buffer = greeting()): Promise<{ rfb: Rfb; screen: Duplex }> {
  const [here, screen] = duplexPair();
  screen.resume();
  screen.write(said);
  return { rfb: await Rfb.open(here, soon()), screen };
}

describe("a screen that speaks RFB", () => {
  test("is shown whole, whatever came before, and follows a new size", async () => {
    const { rfb, screen } = await opened();
    screen.write(update(rectangle(0, 0, 1, 1, 0, pixels(1, 9))));
    screen.write(Buffer.from([2]));
    screen.write(update(rectangle(0, 0, 4, 1, 0, pixels(4, 1)), rectangle(0, 1, 4, 1, 0, pixels(4, 2))));
    expect(await rfb.picture(soon())).toEqual({ width: 4, height: 2, pixels: Buffer.concat([pixels(4, 1), pixels(4, 2)]) });
    screen.write(update(sized(2, 1)));
    screen.write(update(rectangle(0, 0, 2, 1, 0, pixels(2, 3))));
    expect(await rfb.picture(soon())).toEqual({ width: 2, height: 1, pixels: pixels(2, 3) });
    // Before each picture it tells its size, and then waits for another request.
    screen.write(update(sized(2, 1)));
    screen.write(update(rectangle(0, 0, 2, 1, 0, pixels(2, 4))));
    expect(await rfb.picture(soon())).toEqual({ width: 2, height: 1, pixels: pixels(2, 4) });
  });

  test("gets another size, or says that it can't have it", async () => {
    const { rfb, screen } = await opened();
    screen.write(update(sized(8, 6), sized(8, 6, { why: 1 })));
    await rfb.resize(8, 6, soon());
    expect(rfb.size).toEqual({ width: 8, height: 6 });
    screen.write(update(sized(8, 6, { why: 1, status: 3 })));
    await expect(rfb.resize(9, 9, soon())).rejects.toMatchObject({ code: "desktop_failed" });
  });

  test("tells whether it changes in time", async () => {
    const { rfb, screen } = await opened();
    const area = { x: 0, y: 0, width: 4, height: 2 };
    expect(await rfb.change(area, 10, soon())).toBe(false);
    const changes = rfb.change(area, 5_000, soon());
    screen.write(update(rectangle(1, 1, 1, 1, 0, pixels(1, 5))));
    expect(await changes).toBe(true);
    expect(rfb.isOpen).toBe(true);
  });

  test.each([
    ["a version of its own", greeting({ version: "RFB 999.001\n" })],
    ["a password", greeting({ security: [1, 2] })],
    ["a size of nothing", greeting({ width: 0 })],
    ["a size beyond all screens", greeting({ width: 65_535, height: 65_535 })],
  ])("is refused with %s", async (_, said) => {
    await expect(opened(said)).rejects.toMatchObject({ code: "desktop_failed" });
  });

  test.each([
    ["paints outside", update(rectangle(3, 0, 2, 1, 0, pixels(2, 1)))],
    ["uses an encoding that was not offered", update(rectangle(0, 0, 1, 1, 7))],
    ["sends a message of another kind", Buffer.from([99])],
    ["sends a clipboard of a gigabyte", Buffer.from([3, 0, 0, 0, 0x40, 0, 0, 0])],
    ["becomes larger than all screens", update(sized(65_535, 65_535))],
  ])("is let go of when it %s", async (_, said) => {
    const { rfb, screen } = await opened();
    screen.write(said);
    await expect(rfb.picture(soon())).rejects.toMatchObject({ code: "desktop_failed" });
    expect(rfb.isOpen).toBe(false);
  });

  test("that floods has to wait while there is no question", async () => {
    const { screen } = await opened();
    let isTaken = true;
    for (let sent = 0; isTaken && sent < 64; sent++) isTaken = screen.write(Buffer.alloc(64 * 1024));
    expect(isTaken).toBe(false);
  });

  test("that says nothing is not waited for without end", async () => {
    const { rfb } = await opened();
    await expect(rfb.picture(AbortSignal.timeout(20))).rejects.toMatchObject({ name: "TimeoutError" });
  });
});

test("a picture is a PNG with its colours", async () => {
  const png = await encodePng({ width: 2, height: 2, pixels: Buffer.from([1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 0, 1, 2, 0]) });
  expect(png.subarray(0, 8).toString("latin1")).toBe("\u0089PNG\r\n\u001a\n");
  const length = png.readUInt32BE(33);
  const [, ...first] = inflateSync(png.subarray(41, 41 + length));
  expect(first.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6]);
  // The second row is what it differs by from the first.
  expect(first.slice(7)).toEqual([6, 6, 6, 252, 252, 252]);
});

describe("keys", () => {
  test("of a text are one a character, in all of Unicode", () => {
    expect(keysOfText("aÄ\n€🎉")).toEqual([0x61, 0xc4, 0xff0d, 0x010020ac, 0x0101f389]);
    expect(() => keysOfText("\u0001")).toThrow(/control character/);
  });

  test("held together are named as xdotool names them", () => {
    expect(keysOfChord("ctrl+shift+T")).toEqual([0xffe3, 0xffe1, 0x54]);
    expect(keysOfChord("Page_Down")).toEqual([0xff56]);
    expect(keysOfChord("F12")).toEqual([0xffc9]);
    expect(keysOfChord("ctrl+plus")).toEqual([0xffe3, 0x2b]);
    expect(keysOfChord("+")).toEqual([0x2b]);
    for (const wrong of ["ctrl+", "Hyper_X", "constructor", "F99"]) expect(() => keysOfChord(wrong), wrong).toThrow(/no key/);
  });
});
