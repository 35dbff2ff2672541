/** How a sandbox is brought to life from files that are there already. */
import type { SandboxRow } from "../../base/store/rows.ts";
import type { VolumePaths } from "../../machine/volumes/disks.ts";
import type { LaunchAhead } from "./launches-ahead.ts";
import type { FirstUse } from "./sandbox-start.ts";

/** Runs work while the processes of the sandbox that is forked stand still. */
export type StandingStill = <T>(work: () => Promise<T>) => Promise<T>;

export const atOnce: StandingStill = (work) => work();

export interface BringOptions {
  readonly still?: StandingStill | undefined;
  readonly ahead?: LaunchAhead | undefined;
  readonly first?: FirstUse | undefined;
  /** By its caller, so that no spare fits. */
  readonly isNamed?: boolean;
  /** Where the base is a guess: its volume, which is being made, and whether it was right. Until that is known no row is written, and process 1 gets no disk. */
  readonly guessed?: { readonly volume: Promise<VolumePaths>; readonly isRight: Promise<void> };
}

export interface ForkOptions extends Pick<BringOptions, "ahead"> {
  readonly name?: string | undefined;
  readonly labels?: SandboxRow["labels"];
}
