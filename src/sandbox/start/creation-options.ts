/** How a sandbox is brought to life from files that are there already. */
import type { SandboxRow } from "../../base/store/rows.ts";
import type { LaunchAhead } from "./launches-ahead.ts";

/** Runs work while the processes of the sandbox that is forked stand still. */
export type StandingStill = <T>(work: () => Promise<T>) => Promise<T>;

export const atOnce: StandingStill = (work) => work();

export interface BringOptions {
  readonly still?: StandingStill | undefined;
  readonly ahead?: LaunchAhead | undefined;
}

export interface ForkOptions extends Pick<BringOptions, "ahead"> {
  readonly name?: string | undefined;
  readonly labels?: SandboxRow["labels"];
}
