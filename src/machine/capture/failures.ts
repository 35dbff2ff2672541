/** What a capture that failed tells. */
import { CellError } from "../../base/host/helper.ts";
import { VivError } from "../../base/schema/errors.ts";

/** Trying again from the start would end in the same. */
export function isFinal(error: CellError): boolean {
  return error.code === "no-space";
}

export function explain(error: unknown, project: string): unknown {
  if (!(error instanceof CellError)) return error;
  if (error.code === "no-space") return new VivError("disk_full", `There is no room to capture ${project}.`, { cause: error });
  return new VivError("cell_failed", `${project} can't be captured: ${error.message} (${error.step}).`, { cause: error });
}
