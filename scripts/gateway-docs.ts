/** The table of docs/GATEWAY.md, from src/base/schema/gateway-contracts.ts. `node scripts/gateway-docs.ts` writes it; a test compares. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { GATEWAY_CONTRACTS, GATEWAY_RATES, type GatewayContract, type Rate } from "../src/base/schema/gateway-contracts.ts";

/** Names of the input's fields; those that may be left out have a question mark, or the value that then holds. */
function fields(input: z.ZodType): string {
  const { properties = {}, required = [] } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  const shape: Readonly<Record<string, z.ZodType>> = input instanceof z.ZodObject ? input.shape : {};
  const names = Object.keys(properties).map((name) => {
    if (required.includes(name)) return name;
    const value = shape[name]?.safeParse(undefined).data;
    return value === undefined ? `${name}?` : `${name}=${JSON.stringify(value)}`;
  });
  return names.map((name) => `\`${name}\``).join(", ");
}

function often({ burst, perSecond }: Rate): string {
  if (burst === Math.round(perSecond * 60)) return `${burst} a minute`;
  return `${burst} at once, then ${perSecond < 1 ? `one in ${1 / perSecond} s` : `${perSecond} a second`}`;
}

function row({ method, path, input, status, waits, summary, rate }: GatewayContract): string {
  const statuses = waits === undefined ? status : `${status} or 202`;
  const limit = rate === undefined ? "" : often(GATEWAY_RATES[rate]);
  return `| \`${method.toUpperCase()} ${path}\` | ${fields(input)} | ${statuses} | ${summary} | ${limit} |`;
}

/** The page with its table as the contracts are now; what stands outside the marks is left alone. */
export function renderGatewayPage(page: string): string {
  const lines = ["| request | fields | status | what it does | how often |", "|---|---|---|---|---|"];
  const table = [...lines, ...Object.values(GATEWAY_CONTRACTS).map(row)].join("\n");
  return page.replace(/(<!-- requests -->\n)[^]*?(<!-- end -->)/, (_, start: string, end: string) => `${start}${table}\n${end}`);
}

if (import.meta.main) {
  const page = join(import.meta.dirname, "..", "docs", "GATEWAY.md");
  writeFileSync(page, renderGatewayPage(readFileSync(page, "utf8")));
}
