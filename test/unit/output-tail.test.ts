import { expect, test } from "vitest";
import { OutputTail } from "../../src/sandbox/commands/output-tail.ts";

const stdout = (text: string) => ({ stream: "stdout", data: Buffer.from(text) }) as const;

test("the tail of an output is its last bytes, however they came", () => {
  for (const size of [1, 3, 7, 10, 64]) {
    const tail = new OutputTail(10);
    const text = "abcdefghijklmnopqrstuvwxyz".repeat(100);
    for (let at = 0; at < text.length; at += size) tail.add(stdout(text.slice(at, at + size)));
    expect(tail.result()).toEqual({ stdout: "qrstuvwxyz", stderr: "", truncated: true });
  }
});

test("an output within the bound is whole and not called truncated", () => {
  const tail = new OutputTail(10);
  for (const part of ["", "01234", "", "56789", ""]) tail.add(stdout(part));
  tail.add({ stream: "stderr", data: Buffer.from("oops") });
  expect(tail.result()).toEqual({ stdout: "0123456789", stderr: "oops", truncated: false });
});

test("F-30: bytes that are no text cost no more than text", () => {
  const tail = new OutputTail(1024);
  for (let round = 0; round < 5_000; round += 1) tail.add({ stream: "stderr", data: Buffer.of(round % 256) });
  expect(tail.result().stderr.length).toBeLessThanOrEqual(1024);
  expect(tail.result().truncated).toBe(true);
});
