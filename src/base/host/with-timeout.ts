import { VivError } from "../schema/errors.ts";

/**
 * Waits for work at most so long. The work itself goes on after that, and its result is dropped.
 * `what` names the work in the error, or gives another error.
 */
export async function withTimeout<T>(work: Promise<T>, mostMs: number, what: string | (() => Error)): Promise<T> {
  const late = Promise.withResolvers<never>();
  const tooLate = (): Error =>
    typeof what === "string" ? new VivError("timeout", `${what} took longer than ${Math.round(mostMs / 1000)} seconds.`) : what();
  const timer = setTimeout(() => late.reject(tooLate()), mostMs);
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
