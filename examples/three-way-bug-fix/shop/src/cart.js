import { round } from "money-round";

/** What a cart costs. */
export function total(items) {
  return round(items.reduce((sum, { price, count }) => sum + price * count, 0));
}
