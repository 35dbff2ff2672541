/** SC-10: what an answer repeats of a secret is taken out of it, however it is cut. */
import { describe, expect, test } from "vitest";
import { Scrubber } from "../../src/rules/network/scrubber.ts";

const SECRET = "abcabcabd-secret";
const STARS = "*".repeat(SECRET.length);

function through(text: string, cuts: number, ...secrets: string[]): string {
  const scrubber = new Scrubber(secrets);
  const bytes = Buffer.from(text, "latin1");
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += cuts) parts.push(Buffer.from(scrubber.add(Buffer.from(bytes.subarray(at, at + cuts)))));
  return Buffer.concat([...parts, scrubber.end()]).toString("latin1");
}

describe("what is taken out of an answer", () => {
  test.each([1, 2, 3, 5, 8, 13, 1000])("is found in pieces of %i bytes, and nothing else is touched", (cuts) => {
    const text = `${SECRET}abcabc ${SECRET}${SECRET} abcabcabc abcabcabd-secre\0\xff`;
    expect(through(text, cuts, SECRET)).toBe(text.replaceAll(SECRET, STARS));
  });

  test("the length stays, and one text within another does not spoil it", () => {
    expect(through(`x ${SECRET}-longer y`, 4, SECRET, `${SECRET}-longer`)).toBe(`x ${"*".repeat(SECRET.length + 7)} y`);
  });

  test("what can be no part of it is passed on at once: a stream is not held up", () => {
    const scrubber = new Scrubber([SECRET]);
    expect(scrubber.add(Buffer.from("data: hello\n\n")).toString()).toBe("data: hello\n\n");
    expect(scrubber.add(Buffer.from("data: abca")).toString()).toBe("data: ");
    expect(scrubber.add(Buffer.from("!")).toString()).toBe("abca!");
  });

  test("short texts are not looked for", () => {
    expect(new Scrubber(["short"]).looks).toBe(false);
    expect(through("short", 2, "short")).toBe("short");
  });
});
