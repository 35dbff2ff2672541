/** Use cases of notifications: which ways there are to a person, a test of them, and browsers that are subscribed. */
import type { Notifications } from "../../work/notifications/notifications.ts";
import type { PushBrowsers } from "../../work/notifications/push/browsers.ts";
import type { Handlers } from "./operations.ts";

export function notificationHandlers(
  notifications: Notifications,
  browsers: PushBrowsers,
): Pick<Handlers, "listNotifications" | "testNotification" | "addPushBrowser" | "removePushBrowser"> {
  return {
    listNotifications: () => notifications.list(),
    testNotification: (input, signal) => notifications.test(input, signal),
    addPushBrowser: (input) => browsers.add(input),
    removePushBrowser: async ({ browser }) => (await browsers.remove(browser), { ok: true }),
  };
}
