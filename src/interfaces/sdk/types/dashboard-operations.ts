// Made from the contracts by scripts/sdk-types.ts.
import type { DashboardSession } from "./dashboard.ts";

/** Input of: Make a link that opens the dashboard once; the server listens on loopback from then on. */
export interface OpenDashboardInput {
  /** Path of a page. */
  page?: string | undefined;
  /** The approver's token: the person in the browser may then answer questions. */
  approver?: string | undefined;
}

/** Answer of: Make a link that opens the dashboard once; the server listens on loopback from then on. */
export interface OpenDashboardOutput {
  /** Works once. */
  url: string;
  /** ISO time from which the link opens nothing. */
  expiresAt: string;
  /** Whether the person in the browser may answer questions. */
  mayAnswer: boolean;
}

/** Answer of: Browsers that are logged in to the dashboard, and links that were not used yet. */
export interface ListSessionsOutput {
  sessions: DashboardSession[];
}

/** Input of: Log a browser out; its open connections end, too. */
export interface EndSessionInput {
  /** Id of a session of the dashboard. */
  session: string;
}
