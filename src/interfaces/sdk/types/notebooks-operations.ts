// Made from the contracts by scripts/sdk-types.ts.
import type { CodeContextInfo } from "./notebooks.ts";

/** Input of: Run code in a context, which is made if it is not there. */
export interface ExecuteCodeInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Name of a context: its variables are its own. */
  context: string;
  /** The code. */
  code: string;
  /** Answer at once, while it runs. */
  background?: boolean | undefined;
  /** Interrupt it after this time; never if left out. */
  timeout?: number | string | undefined;
}

/** Input of: One execution. */
export interface InspectExecutionInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id of an execution. */
  execution: string;
}

/** Input of: Contexts of a sandbox. */
export interface ListContextsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Contexts of a sandbox. */
export interface ListContextsOutput {
  contexts: CodeContextInfo[];
}

/** Input of: End what runs in a context; its variables stay. */
export interface InterruptContextInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Name of a context: its variables are its own. */
  context: string;
}

/** Input of: Begin a context anew, without its variables. */
export interface RestartContextInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Name of a context: its variables are its own. */
  context: string;
}

/** Input of: End a context. */
export interface RemoveContextInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Name of a context: its variables are its own. */
  context: string;
}
