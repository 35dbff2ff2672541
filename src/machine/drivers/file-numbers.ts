/** Times and sizes of files as JSON can say them. A sandbox sets any it likes, also what no calendar reaches. */
const FURTHEST_MS = 8.64e15;

export function isoTime(ms: number): string {
  return new Date(Math.max(-FURTHEST_MS, Math.min(FURTHEST_MS, Math.floor(ms)))).toISOString();
}

export function safeSize(bytes: number): number {
  return Math.min(bytes, Number.MAX_SAFE_INTEGER);
}
