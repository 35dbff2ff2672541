// Made from the contracts by scripts/sdk-types.ts.
import type { MachineSample } from "./server.ts";

/** Answer of: What was used of the machine in the last day, as far back as the server runs. */
export interface MachineHistoryOutput {
  /** The oldest first, one a minute. */
  samples: MachineSample[];
}

/** Input of: What this machine can do. */
export interface DoctorInput {
  /** A folder in the project whose own programs count, too. */
  project?: string | undefined;
  /** The caller's PATH; the system's usual one if left out. */
  path?: string | undefined;
}

/** Input of: Trust the present content of a project's vivarium.json. */
export interface TrustInput {
  /** Absolute path in the project. */
  project: string;
  /** Only if the content has this hash, as a dry run told it; whatever it is if left out. */
  hash?: string | undefined;
  /** Only say what would be trusted. */
  dryRun?: boolean | undefined;
}

/** What a project's config asks for. */
export interface TrustOutput {
  /** The project's folder. */
  project: string;
  /** Its config file, if there is one. */
  file: string | null;
  /** What the content widens. */
  widens: ({
    /** Config key. */
    key: string;
    /** What it asks for, as text. */
    value: string;
  })[];
  /** Files of the project that its lines name or run on this machine; trust is for their content, too. */
  runs: string[];
  /** Hash of the content that was read, with that of these files; null without a config. */
  hash: string | null;
  /** Whether the present content is trusted now. */
  trusted: boolean;
}

/** Input of: Remove finished sandboxes, expired snapshots and leftovers. */
export interface PruneInput {
  /** Also running sandboxes. */
  all?: boolean | undefined;
}

/** What was removed. */
export interface PruneOutput {
  /** Sandboxes removed. */
  sandboxes: number;
  /** Snapshots removed. */
  snapshots: number;
  /** Bases removed. */
  bases: number;
  /** Leftovers removed, a sentence each. */
  leftovers: string[];
}
