/**
 * Whom the kernel ends when the machine runs out of memory: not the server, which has no state that can be freed and all
 * sandboxes to look after. What it starts is no better than anything else, and gets the score the server came with.
 */
import { readFileSync, writeFileSync } from "node:fs";

const SCORE = "/proc/self/oom_score_adj";
const PROTECTED = "-900";

/** Of this process: what it was started with, while it is protected. */
const own: { before: string | undefined } = { before: undefined };

/** Protects this process where that is permitted, which is to root; the answer undoes it. */
export function protectFromOom(): () => void {
  try {
    const before = readFileSync(SCORE, "utf8").trim();
    writeFileSync(SCORE, PROTECTED);
    own.before = before;
  } catch {
    // Not permitted, or not Linux: the server is then as good as everybody.
    return () => undefined;
  }
  return () => {
    if (own.before !== undefined) writeFileSync(SCORE, own.before);
    own.before = undefined;
  };
}

/**
 * Starts a process that is not protected. A child has its parent's score from birth, and Node starts it before it
 * returns; so the score is given up for that moment, and no child is protected at any time.
 */
export function unprotected<T>(start: () => T): T {
  if (own.before === undefined) return start();
  writeFileSync(SCORE, own.before);
  try {
    return start();
  } finally {
    writeFileSync(SCORE, PROTECTED);
  }
}
