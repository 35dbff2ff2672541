import type { OutputChunk, RunningCommand } from "../../machine/drivers/drivers.ts";
import type { Command, CommandEnd } from "../../base/schema/command.ts";

/** A command as a caller holds it. */
export interface CommandStream {
  readonly command: Command;
  readonly output: AsyncIterable<OutputChunk>;
  readonly end: Promise<CommandEnd>;
  write(data: Uint8Array): Promise<void>;
  endInput(): void;
  resize(rows: number, cols: number): void;
  signal(signal: string): void;
  /** The caller goes away: the command is killed or kept, as it was opened. */
  close(): void;
  /** As of a running command: where that has them. */
  readonly handOver?: NonNullable<RunningCommand["handOver"]>;
  readonly handBack?: NonNullable<RunningCommand["handBack"]>;
}
