/** How often a test that looks for rare events tries: a few times in every run, many times in `npm run soak`. */
export const SOAKING = process.env["VIV_SOAK"] !== undefined;

export function rounds(few: number, many: number): number {
  return SOAKING ? many : few;
}
