/**
 * Which process the kernel ends when the machine runs out of memory: not the server, since ending it frees little and all sandboxes
 * need it. A program that the server starts is not protected: it gets the score that the server was started with.
 */
import { readFileSync, writeFileSync } from "node:fs";

const SCORE = "/proc/self/oom_score_adj";
/** Root gets the first score. A server whose caller raised its score may at least set it back to the second. */
const WANTED = [-900, 0];

/** The scores of this process while it is protected: the one it was started with, and the one it has now. */
const own: { scores: { before: number; now: number } | undefined } = { scores: undefined };

/** Protects this process as far as that is permitted; the answer undoes it. */
export function protectFromOom(): () => void {
  const before = readScore();
  const now = before === undefined ? undefined : WANTED.find((score) => score < before && writeScore(score));
  if (before === undefined || now === undefined) return () => undefined;
  own.scores = { before, now };
  return () => {
    own.scores = undefined;
    writeScore(before);
  };
}

/**
 * Starts a process that is not protected. A child has its parent's score from birth, and Node starts it before it
 * returns; so the score is given up for that moment, and no child is protected at any time.
 */
export function startUnprotected<T>(start: () => T): T {
  if (own.scores === undefined) return start();
  const { before, now } = own.scores;
  // Raising is always permitted; what can't be given up must not be passed on.
  writeFileSync(SCORE, String(before));
  try {
    return start();
  } finally {
    writeScore(now);
  }
}

function readScore(): number | undefined {
  try {
    return Number(readFileSync(SCORE, "utf8"));
  } catch {
    // Not Linux.
    return undefined;
  }
}

function writeScore(score: number): boolean {
  try {
    writeFileSync(SCORE, String(score));
    return true;
  } catch {
    // Not permitted: it stays as it is.
    return false;
  }
}
