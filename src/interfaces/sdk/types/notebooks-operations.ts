// Made from the contracts by scripts/sdk-types.ts.
import type { Json } from "./notebooks.ts";

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

/** One piece of code that runs or has run. */
export interface ExecuteCodeOutput {
  /** Id. */
  id: string;
  /** Id of its sandbox. */
  sandbox: string;
  /** Name of its context. */
  context: string;
  /** failed: it raised an error, or its kernel ended. */
  state: "running" | "done" | "failed" | "interrupted";
  /** Why it failed, where it was no error of the code. */
  reason: string | null;
  /** How many pieces the context has run, this one included. */
  count: number | null;
  /** Outputs so far, in order; neighbours of one stream are joined. */
  outputs: ({
    kind: "stdout" | "stderr";
    /** What was printed. */
    text: string;
  } | {
    kind: "result" | "display";
    /** The same thing in several forms, by MIME type. Pictures are base64. */
    data: { [name: string]: Json };
  } | {
    kind: "error";
    /** Class of the error. */
    name: string;
    /** What it says. */
    value: string;
    /** Where it happened, without colours. */
    traceback: string;
  })[];
  /** Bytes of outputs beyond the limit, which were not kept. */
  droppedBytes: number;
  /** ISO time. */
  startedAt: string;
  /** ISO time. */
  endedAt: string | null;
}

/** Input of: One execution. */
export interface InspectExecutionInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  /** Id of an execution. */
  execution: string;
}

/** One piece of code that runs or has run. */
export interface InspectExecutionOutput {
  /** Id. */
  id: string;
  /** Id of its sandbox. */
  sandbox: string;
  /** Name of its context. */
  context: string;
  /** failed: it raised an error, or its kernel ended. */
  state: "running" | "done" | "failed" | "interrupted";
  /** Why it failed, where it was no error of the code. */
  reason: string | null;
  /** How many pieces the context has run, this one included. */
  count: number | null;
  /** Outputs so far, in order; neighbours of one stream are joined. */
  outputs: ({
    kind: "stdout" | "stderr";
    /** What was printed. */
    text: string;
  } | {
    kind: "result" | "display";
    /** The same thing in several forms, by MIME type. Pictures are base64. */
    data: { [name: string]: Json };
  } | {
    kind: "error";
    /** Class of the error. */
    name: string;
    /** What it says. */
    value: string;
    /** Where it happened, without colours. */
    traceback: string;
  })[];
  /** Bytes of outputs beyond the limit, which were not kept. */
  droppedBytes: number;
  /** ISO time. */
  startedAt: string;
  /** ISO time. */
  endedAt: string | null;
}

/** Input of: Contexts of a sandbox. */
export interface ListContextsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
}

/** Answer of: Contexts of a sandbox. */
export interface ListContextsOutput {
  contexts: ({
    /** Name. */
    name: string;
    /** Name of its kernel, such as python3. */
    language: string;
    /** As Jupyter tells it: starting, idle, busy, dead. */
    state: string;
  })[];
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
