/** The price in cents after a discount of so many percent. */
export function discounted(cents, percent) {
  return cents - percent;
}
