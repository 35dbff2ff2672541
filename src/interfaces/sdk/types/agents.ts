// Made from the contracts by scripts/sdk-types.ts.

/** An agent. */
export interface Agent {
  name: string;
  /** As people call it. */
  title: string;
  /** Absolute path; null where it was not found. */
  program: string | null;
  from: "installed" | "path" | "npm" | "project" | null;
  /** As its package says; null where that is not known without a probe. */
  version: string | null;
  /** Whether a login is kept for a model API that it can use. unneeded: it uses none of the model gateway. */
  login: "kept" | "missing" | "unneeded";
  /** The model API that it would use. */
  provider: string | null;
  /** The version that `viv agents install` fetches; null where it fetches none. */
  installs: string | null;
}

/** What came of starting an agent's program with --version in a throw-away sandbox. */
export interface AgentProbe {
  /** Whether its program ran and said its version. */
  works: boolean;
  version: string | null;
  /** What it printed first, or why it did not run. */
  detail: string;
  /** Milliseconds that the program took. */
  wallMs: number | null;
}
