/** The error of the SDK, as its callers see it. */
import { VivError } from "../../base/schema/errors.ts";
import type { ErrorCode } from "./types/error-code.ts";

/** What every call rejects with. The message is one sentence about what happened. */
export interface VivariumError extends Error {
  readonly code: ErrorCode;
  /** What to do now, one sentence. */
  readonly remedy: string;
  /** HTTP status of the code. */
  readonly status: number;
}

/** For `error instanceof VivariumError`. */
export const VivariumError: {
  new (code: ErrorCode, message: string, options?: { cause?: unknown; remedy?: string }): VivariumError;
  readonly prototype: VivariumError;
} = VivError;

export function cancelled(signal: AbortSignal): VivariumError {
  return new VivariumError("cancelled", "The call was cancelled.", { cause: signal.reason });
}
