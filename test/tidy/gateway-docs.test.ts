/** docs/GATEWAY.md says what the gateway's contracts say; `node scripts/gateway-docs.ts` writes its table. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderGatewayPage } from "../../scripts/gateway-docs.ts";
import { root } from "./files.ts";

test("docs/GATEWAY.md lists every request as its contract has it", () => {
  const page = readFileSync(join(root, "docs", "GATEWAY.md"), "utf8");
  expect(page.match(/<!-- requests -->/g)).toHaveLength(1);
  expect(page).toBe(renderGatewayPage(page));
});
