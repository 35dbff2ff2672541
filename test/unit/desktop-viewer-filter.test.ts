import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { ViewerFilter } from "../../src/sandbox/desktop/viewer-filter.ts";

const GREETING = Buffer.concat([Buffer.from("RFB 003.008\n"), Buffer.from([1, 0])]);
const GREETED = Buffer.concat([Buffer.from("RFB 003.008\n"), Buffer.from([1, 1])]);
const FORMAT = Buffer.concat([Buffer.from([0]), Buffer.alloc(19, 7)]);
const REQUEST = Buffer.concat([Buffer.from([3]), Buffer.alloc(9, 1)]);
const KEY = Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61]);
const POINTER = Buffer.from([5, 1, 0, 10, 0, 10]);
const CLIPBOARD = Buffer.concat([Buffer.from([6, 0, 0, 0, 0, 0, 0, 5]), Buffer.from("hello")]);
const EXTENDED_CLIPBOARD = Buffer.concat([Buffer.from([6, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc]), Buffer.from("abcd")]);
const SIZE = Buffer.concat([Buffer.from([251, 0, 4, 0, 3, 0, 1, 0]), Buffer.alloc(16)]);
const QEMU_KEY = Buffer.concat([Buffer.from([255, 0]), Buffer.alloc(10)]);
const FENCE = Buffer.concat([Buffer.from([248, 0, 0, 0, 0, 0, 0, 1, 3]), Buffer.from("abc")]);
const INPUT = [KEY, POINTER, CLIPBOARD, EXTENDED_CLIPBOARD, SIZE, QEMU_KEY];

function encodings(...kinds: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * kinds.length);
  message[0] = 2;
  message.writeUInt16BE(kinds.length, 2);
  for (const [at, kind] of kinds.entries()) message.writeInt32BE(kind, 4 + 4 * at);
  return message;
}

async function through(mayAct: () => boolean, data: Buffer, pieces: number): Promise<Buffer> {
  const filter = new ViewerFilter(mayAct);
  const passed = buffer(filter);
  for (let at = 0; at < data.length; at += pieces) filter.write(data.subarray(at, at + pieces));
  filter.end();
  return passed;
}

describe("what a viewer sends to a screen", () => {
  test.each([1, 3, 7, 4096])("passes whole to one that has taken over, in pieces of %i bytes", async (pieces) => {
    const messages = Buffer.concat([FORMAT, REQUEST, ...INPUT, FENCE]);
    expect(await through(() => true, Buffer.concat([GREETING, messages]), pieces)).toEqual(Buffer.concat([GREETED, messages]));
  });

  test.each([1, 3, 7, 4096])("has no keys, pointer, clipboard and size from one that only looks, in pieces of %i bytes", async (pieces) => {
    const sent = Buffer.concat([GREETING, FORMAT, ...INPUT, REQUEST, ...INPUT, FENCE]);
    expect(await through(() => false, sent, pieces)).toEqual(Buffer.concat([GREETED, FORMAT, REQUEST, FENCE]));
  });

  test("is judged message by message, so that control can change in between", async () => {
    const answers = [true, false, true];
    const passed = await through(() => answers.shift() ?? false, Buffer.concat([GREETING, KEY, POINTER, CLIPBOARD]), 4096);
    expect(passed).toEqual(Buffer.concat([GREETED, KEY, CLIPBOARD]));
  });

  test("offers no extension whose messages are not known here", async () => {
    const passed = await through(() => true, Buffer.concat([GREETING, encodings(0, -316, -223, -259, -309, -305, -312)]), 5);
    expect(passed).toEqual(Buffer.concat([GREETED, encodings(0, -223, -312)]));
  });

  test.each([
    ["a message of another kind", Buffer.concat([GREETING, Buffer.from([250, 0, 1, 2])])],
    ["sound", Buffer.concat([GREETING, Buffer.from([255, 1, 0, 0])])],
    ["a clipboard of a gigabyte", Buffer.concat([GREETING, Buffer.from([6, 0, 0, 0, 0x40, 0, 0, 0])])],
    ["another version", Buffer.from("RFB 003.003\n")],
    ["a security type that was not offered", Buffer.concat([Buffer.from("RFB 003.008\n"), Buffer.from([2])])],
  ])("ends the connection at %s", async (_, data) => {
    await expect(through(() => true, data, 4096)).rejects.toThrow(/viewer/);
  });
});
