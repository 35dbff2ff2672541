// Made from the contracts by scripts/sdk-types.ts.

/** A place where code leaves its variables. */
export interface CodeContextInfo {
  /** Name. */
  name: string;
  /** Name of its kernel, such as python3. */
  language: string;
  /** As Jupyter tells it: starting, idle, busy, dead. */
  state: string;
}

/** One piece of code that runs or has run. */
export interface CodeExecution {
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
  outputs: CodeOutput[];
  /** Bytes of outputs beyond the limit, which were not kept. */
  droppedBytes: number;
  /** ISO time. */
  startedAt: string;
  /** ISO time. */
  endedAt: string | null;
}

/** Something that code printed, showed or failed with. It comes from the sandbox: HTML in it is to be shown in a frame of its own. */
export type CodeOutput = {
  kind: "stdout" | "stderr";
  /** What was printed. */
  text: string;
} | {
  kind: "result" | "display";
  data: CodeForms;
} | {
  kind: "error";
  /** Class of the error. */
  name: string;
  /** What it says. */
  value: string;
  /** Where it happened, without colours. */
  traceback: string;
};

/** The same thing in several forms, by MIME type. Pictures are base64. */
export type CodeForms = { [name: string]: Json };

/** Any JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
