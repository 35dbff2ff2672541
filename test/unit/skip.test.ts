import { describe, expect, test } from "vitest";
import { missing, needs } from "../support/skip.ts";

describe("a test that says what it needs", () => {
  test("runs where nothing is missing", () => {
    expect(missing("git")).toBeUndefined();
    expect(needs("git")).toEqual({ skip: false, meta: {} });
  });

  test("is skipped with the first reason where something is missing", () => {
    const path = process.env["PATH"];
    process.env["PATH"] = "/nonexistent";
    try {
      expect(missing("git", "chromium")).toBe(missing("chromium"));
      expect(needs("chromium")).toEqual({ skip: true, meta: { skipReason: "chromium is not installed" } });
    } finally {
      process.env["PATH"] = path;
    }
  });
});
