// Made from the contracts by scripts/sdk-types.ts.
import type { DashboardSession, NotificationChannel, NotificationDelivery, PushBrowser } from "./dashboard.ts";

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

/** Answer of: Ways to a person, and what was sent by them lately, the newest first. */
export interface ListNotificationsOutput {
  channels: NotificationChannel[];
  /** Browsers that get notifications without an open page. */
  browsers: PushBrowser[];
  /** The server's public key for web push (VAPID), as a browser's subscribe() takes it. */
  pushKey: string;
  deliveries: NotificationDelivery[];
}

/** Input of: Send a notification that says that it is a test; answers once each channel has tried it once. */
export interface TestNotificationInput {
  /** Only by this one. */
  channel?: string | undefined;
}

/** Answer of: Send a notification that says that it is a test; answers once each channel has tried it once. */
export interface TestNotificationOutput {
  deliveries: NotificationDelivery[];
}

/** Input of: Send notifications to a browser, as long as its session lasts. */
export interface AddPushBrowserInput {
  /** Session of the browser. */
  session: string;
  /** Address that its push service gave the browser. */
  endpoint: string;
  /** What messages to this browser are encrypted with. */
  keys: {
    /** The browser's public key. */
    p256dh: string;
    /** The browser's shared secret. */
    auth: string;
  };
}

/** Input of: Send a browser no more notifications. */
export interface RemovePushBrowserInput {
  /** Id of a browser that gets notifications. */
  browser: string;
}
