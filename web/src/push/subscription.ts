/** This browser's subscription to push messages: what stands in its way, how it begins and ends, and how it is kept. */
import { call } from "../server/client.ts";
import { session } from "../server/session.ts";

const WORKER = "/push-worker.js";

/** What keeps this browser from getting messages, in a sentence; undefined where nothing does. */
export function obstacle(): string | undefined {
  if (!isSecureContext)
    return "This page has no secure address, so the browser allows no notifications here. Open it by https://, or on the machine itself by 127.0.0.1.";
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window))
    return "This browser has no push messages here. On an iPhone or iPad, add the page to the home screen, and open it from there.";
  if (Notification.permission === "denied")
    return "Notifications of this page are blocked in this browser. Its settings for this site allow them again.";
  return undefined;
}

export async function currentSubscription(): Promise<PushSubscription | undefined> {
  if (obstacle() !== undefined) return undefined;
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration?.pushManager.getSubscription()) ?? undefined;
}

/** A promise that the browser may never keep, such as that of a push service it can't reach. */
async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error(`${what} did not answer.`)), ms));
  return Promise.race([work, late]);
}

function sameKey(subscription: PushSubscription, key: string): boolean {
  const own = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer(0));
  return (
    btoa(String.fromCharCode(...own))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "") === key
  );
}

/** Asks the person, the browser and its push service; throws with what one of them said. */
export async function subscribe(pushKey: string): Promise<void> {
  const asked = await Notification.requestPermission();
  if (asked !== "granted") throw new Error(obstacle() ?? "Notifications were not allowed.");
  await navigator.serviceWorker.register(WORKER, { scope: "/" });
  const registration = await within(10_000, "The service worker", navigator.serviceWorker.ready);
  const before = await registration.pushManager.getSubscription();
  if (before !== null && !sameKey(before, pushKey)) await before.unsubscribe();
  const options = { userVisibleOnly: true, applicationServerKey: pushKey };
  await tell(await within(20_000, "The push service of this browser", registration.pushManager.subscribe(options)));
}

/** Tells the server where messages to this browser go. */
async function tell(subscription: PushSubscription): Promise<void> {
  const { endpoint, keys } = subscription.toJSON();
  const own = session();
  if (own === undefined || endpoint === undefined) throw new Error("This browser is not logged in.");
  await call("addPushBrowser", { session: own.id, endpoint, keys: { p256dh: keys?.["p256dh"] ?? "", auth: keys?.["auth"] ?? "" } });
}

export async function unsubscribe(browser: string | undefined): Promise<void> {
  if (browser !== undefined) await call("removePushBrowser", { browser });
  await (await currentSubscription())?.unsubscribe();
}

/** After a new login the server knows this browser by another session: its subscription is told anew. */
export async function keep(): Promise<void> {
  const subscription = await currentSubscription();
  const own = session();
  if (subscription === undefined || own === undefined) return;
  const { browsers, pushKey } = await call("listNotifications", {});
  if (browsers.some((one) => one.session === own.id)) return;
  if (sameKey(subscription, pushKey)) await tell(subscription);
  else await subscribe(pushKey);
}
