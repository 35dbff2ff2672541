import assert from "node:assert";
import { test } from "node:test";
import { discounted } from "../src/discount.js";

test("a tenth off", () => assert.equal(discounted(2000, 10), 1800));
test("half a cent is rounded up", () => assert.equal(discounted(15, 10), 14));
