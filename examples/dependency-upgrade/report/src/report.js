import { table } from "plain-table";

export function report(sales) {
  return table(sales.map(({ what, count }) => [what, count]));
}
