/** A reporter of vitest: writes how many errors came from outside any test. They fail a run, and its results don't name them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reporter } from "vitest/node";

/** Below the project's folder. */
export const STRAY_ERRORS = ".cache/stray-errors";

export default class StrayErrors implements Reporter {
  onTestRunEnd(_modules: unknown, errors: readonly unknown[]): void {
    writeFileSync(join(import.meta.dirname, "..", STRAY_ERRORS), String(errors.length));
  }
}
