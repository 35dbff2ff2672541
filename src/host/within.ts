import { VivError } from "../schema/errors.ts";

/** Waits for work so long and no longer. The work itself goes on, and what becomes of it is nobody's concern any more. */
export async function within<T>(work: Promise<T>, mostMs: number, what: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new VivError("timeout", `${what} took longer than ${Math.round(mostMs / 1000)} seconds.`)),
    mostMs,
  );
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
