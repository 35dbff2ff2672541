/** How the compiler of TypeScript is started: on one core, for a third of the processor time that it takes on several. */
import { join } from "node:path";

export const TSC = join(import.meta.dirname, "..", "node_modules", ".bin", "tsc");

/** Checkers of types beside each other do much of the work twice. */
export const ONE_CHECKER = "--singleThreaded";

/** The compiler and the linter are written in Go: they end soon, so they collect garbage rarely. */
export const RARE_COLLECTION = { GOGC: "400" } as const;
