import { sanitizedProgram } from "./native-programs.ts";
import { missing } from "./skip.ts";
import { CELL } from "./storage.ts";

let program: string | undefined;

/** The cell, built with sanitizers where there is a compiler: what they find ends the process, and with it the request. */
export function sanitizedCell(): string {
  if (process.env["VIV_CELL"] !== undefined || missing("compiler") !== undefined) return CELL;
  return (program ??= sanitizedProgram(
    "cell",
    "tests/sanitized_cell.c main.c $(find host init launch mover shared trees -name '*.c')",
    "-pthread",
  ));
}
