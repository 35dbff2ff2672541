import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "../src/cart.js";

test("a cart costs what its items cost together", () => {
  assert.equal(total([{ price: 1.5, count: 2 }, { price: 0.25, count: 4 }]), 4);
});
