import { sanitizedProgram } from "./native-programs.ts";

let program: string | undefined;

/** The mover, built with sanitizers: what they find ends it. */
export function sanitizedMover(): string {
  return (program ??= sanitizedProgram("testmover", "tests/testmover.c mover/*.c"));
}
