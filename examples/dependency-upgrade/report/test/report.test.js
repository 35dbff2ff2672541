import assert from "node:assert/strict";
import { test } from "node:test";
import { report } from "../src/report.js";

test("a report has a line for each sale", () => {
  const text = report([{ what: "tea", count: 2 }, { what: "coffee", count: 11 }]);
  assert.equal(text.split("\n").length, 2);
});

test("numbers stand below each other", () => {
  const [first, second] = report([{ what: "tea", count: 2 }, { what: "coffee", count: 11 }]).split("\n");
  assert.equal(first.indexOf("2"), second.indexOf("11"));
});
