import { describe, expect, test } from "vitest";
import { withTimeout } from "../../src/base/host/with-timeout.ts";

describe("work with a time limit", () => {
  test("gives its result, or its error, when it ends in time", async () => {
    expect(await withTimeout(Promise.resolve(7), 1000, "Counting")).toBe(7);
    await expect(withTimeout(Promise.reject(new Error("no")), 1000, "Counting")).rejects.toThrow("no");
  });

  test("F-28: is given up with a sentence when it hangs, and its late failure does no harm", async () => {
    const hanging = Promise.withResolvers<never>();
    await expect(withTimeout(hanging.promise, 10, "Counting")).rejects.toMatchObject({
      code: "timeout",
      message: expect.stringContaining("Counting took longer"),
    });
    hanging.reject(new Error("too late"));
  });
});
