/** What SQLite's result codes mean here. */
import { VivError } from "../../schema/errors.ts";

const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const CONSTRAINT = 19;
const NOT_A_DATABASE = 26;

/** The primary result code; extended codes carry it in their low byte. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

export function isBusy(error: unknown): boolean {
  if (error instanceof VivError) return error.code === "store_busy";
  const code = resultCode(error);
  return code === BUSY || code === LOCKED;
}

function constraintError(error: Error): VivError {
  if (error.message.includes("sandboxes.name")) return new VivError("name_taken", "Another sandbox has this name.", { cause: error });
  return new VivError("exists", `The database has such a row already: ${error.message}.`, { cause: error });
}

export function storeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  switch (resultCode(error)) {
    case BUSY:
    case LOCKED:
      return new VivError("store_busy", "Another process holds the database.", { cause: error });
    case CORRUPT:
    case NOT_A_DATABASE:
      return new VivError("store_corrupt", `The database cannot be read: ${error.message}.`, { cause: error });
    case FULL:
      return new VivError("disk_full", "The disk under the database is full.", { cause: error });
    case CONSTRAINT:
      return constraintError(error);
    default:
      return error;
  }
}
