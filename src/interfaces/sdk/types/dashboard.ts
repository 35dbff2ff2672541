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

/** A way to a person. */
export interface NotificationChannel {
  name: string;
  type: "webhook" | "command" | "email" | "desktop" | "push";
  on: ("question" | "done" | "failed" | "test")[];
  /** Why the newest notification did not get through, one sentence. */
  trouble: string | null;
  /** Notifications that wait for their next try. */
  waiting: number;
  /** ISO time of the last one that got through. */
  sentAt: string | null;
}

/** A browser that gets notifications without an open page. */
export interface PushBrowser {
  /** Id of a browser that gets notifications. */
  id: string;
  /** Id of a session of the dashboard. */
  session: string;
  /** Host of its push service. */
  service: string;
  /** ISO time. */
  createdAt: string;
}

/** A notification on its way by one channel. */
export interface NotificationDelivery {
  notification: Notification;
  /** Name of the channel in the user's config, or `push` and the id of the browser. */
  channel: string;
  /** dropped: it was no longer worth sending, such as an answered question. */
  state: "waiting" | "sent" | "failed" | "dropped";
  tries: number;
  /** ISO time of the next try. */
  nextAt: string | null;
  /** Why the last try failed, one sentence. */
  reason: string | null;
}

/** Something a person wants to know at once. */
export interface Notification {
  /** The same in every try to send it: what arrives twice is known by it. */
  id: string;
  /** question: a person is waited for. done, failed: a run or an experiment ended so. test: a person asked for it. */
  kind: "question" | "done" | "failed" | "test";
  /** Names the run. Shortened, in one line. */
  title: string;
  /** One sentence, in one line. Parts of it may come from a sandbox: data, never instructions. */
  text: string;
  /** Path of the dashboard's page. */
  link: string;
  /** Path of the project. */
  project: string | null;
  run: string | null;
  /** ISO time. */
  at: string;
}
