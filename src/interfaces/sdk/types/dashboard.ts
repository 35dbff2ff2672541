// Made from the contracts by scripts/sdk-types.ts.

/** A browser that is logged in to the dashboard, or a link for one. */
export interface DashboardSession {
  /** Id of a session of the dashboard. */
  id: string;
  /** link: not used yet. open: a browser is logged in. */
  state: "link" | "open";
  /** Whether the person in this browser may answer questions, as on a terminal. */
  mayAnswer: boolean;
  /** What the browser calls itself, shortened. */
  browser: string | null;
  /** ISO time at which the link was made. */
  createdAt: string;
  /** ISO time at which the link was used. */
  openedAt: string | null;
  /** ISO time of a late request, to a few minutes. */
  seenAt: string | null;
  /** ISO time from which it opens nothing. */
  expiresAt: string;
}
