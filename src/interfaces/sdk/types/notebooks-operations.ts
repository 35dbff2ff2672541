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

/** Input of: Start JupyterLab inside, if it does not run, and make a link that shows it to one browser. */
export interface OpenNotebookInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Path and query at which the preview opens. */
  path?: string | undefined;
  /** For a frame of the dashboard instead of a tab: browsers keep cookies of both apart. */
  frame?: boolean | undefined;
  /** The key of a browser's session: the preview ends with that session. */
  key?: string | undefined;
}

/** A preview that can be opened. */
export interface OpenNotebookOutput {
  /** Lets one browser in, once; then it shows the preview. */
  url: string;
  /** Address of the preview for a browser that is in. */
  address: string;
  /** ISO time from which the link lets no browser in. */
  expiresAt: string;
}
