// Made from the contracts by scripts/sdk-types.ts.
import type { Process } from "./commands.ts";
import type { Command } from "./sandboxes.ts";

/** Input of: Run a command to its end and return its output. */
export interface RunCommandInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Program and arguments. */
  command: string[];
  /** Working folder inside, absolute or relative to the project's folder, which it is if left out. */
  cwd?: string | undefined;
  /** Environment variables added to the sandbox's own. */
  env?: { [name: string]: string } | undefined;
  /** User inside, by name or number; the caller's if left out. */
  user?: string | undefined;
  /** Ends the command after this time. */
  timeoutMs?: number | undefined;
  /** Text for its standard input. */
  stdin?: string | undefined;
  /** Return at once; look again with the command's id. */
  background?: boolean | undefined;
  /** Give it a terminal of this size. */
  terminal?: {
    /** Rows. */
    rows: number;
    /** Columns. */
    cols: number;
  } | undefined;
}

/** Input of: Commands that run or ran. */
export interface ListCommandsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Also those that ended. */
  all?: boolean | undefined;
}

/** Answer of: Commands that run or ran. */
export interface ListCommandsOutput {
  commands: Command[];
}

/** Input of: One command with its logged output. */
export interface InspectCommandInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id of a command. */
  command: string;
}

/** Input of: Send a signal to a command's process group. */
export interface KillCommandInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id of a command. */
  command: string;
  /** Signal name or number. */
  signal?: string | undefined;
}

/** Input of: Processes that run inside, also those that commands left behind. */
export interface ListProcessesInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Processes that run inside, also those that commands left behind. */
export interface ListProcessesOutput {
  /** In the order of their ids, 1000 at most. */
  processes: Process[];
  /** True if there are more. */
  more: boolean;
}
