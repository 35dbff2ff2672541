/**
 * The service worker: shows what the server sends by push, also while no page is open, and leads a tap to its place. It keeps nothing
 * and answers no request of the pages. What it shows is text: the browser gives it no meaning.
 */

/** What a service worker has that a page has not. The types of both can't be in one program. */
interface PushWorker {
  addEventListener(type: "install" | "activate", heard: (event: Waiting) => void): void;
  addEventListener(type: "push", heard: (event: Waiting & { readonly data: { json(): unknown } | null }) => void): void;
  addEventListener(type: "notificationclick", heard: (event: Waiting & { readonly notification: Notification }) => void): void;
  skipWaiting(): Promise<void>;
  readonly registration: ServiceWorkerRegistration;
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window"; includeUncontrolled: boolean }): Promise<readonly OpenPage[]>;
    openWindow(url: string): Promise<OpenPage | null>;
  };
}

interface Waiting {
  waitUntil(work: Promise<unknown>): void;
}

interface OpenPage {
  readonly url: string;
  focus(): Promise<OpenPage>;
  navigate(url: string): Promise<OpenPage | null>;
}

interface Told {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly text: string;
  readonly link: string;
}

const worker = self as unknown as PushWorker;
const NOT_UNDERSTOOD: Told = { id: "unknown", kind: "question", title: "Vivarium", text: "Something needs you.", link: "/" };

function toldBy(data: { json(): unknown } | null): Told {
  try {
    const given = data?.json() as Partial<Told>;
    const known = Object.keys(NOT_UNDERSTOOD) as (keyof Told)[];
    return known.every((name) => typeof given[name] === "string") ? (given as Told) : NOT_UNDERSTOOD;
  } catch {
    // A browser takes the right to push away from a page that shows nothing.
    return NOT_UNDERSTOOD;
  }
}

/** An address of this origin, whatever the link says. */
function placeOf(link: unknown): string {
  try {
    const url = new URL(typeof link === "string" ? link : "/", location.origin);
    return url.origin === location.origin ? url.href : `${location.origin}/`;
  } catch {
    return `${location.origin}/`;
  }
}

async function show({ id, kind, title, text, link }: Told): Promise<void> {
  await worker.registration.showNotification(title, {
    body: text,
    // The same one again takes the place of the first.
    tag: id,
    icon: "/icon-192.png",
    badge: "/badge-96.png",
    requireInteraction: kind === "question",
    data: { link },
  });
}

/** A page that is open goes there; where there is none, one is opened. */
async function open(place: string): Promise<void> {
  const pages = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find(({ url }) => url === place) ?? pages[0];
  if (page === undefined) return void (await worker.clients.openWindow(place));
  // Some browsers bring a page to the front in answer to a tap alone.
  await page.focus().catch(() => undefined);
  if (page.url === place) return;
  const shown = await page.navigate(place).catch(() => null);
  if (shown === null) await worker.clients.openWindow(place);
}

worker.addEventListener("install", (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("push", (event) => event.waitUntil(show(toldBy(event.data))));
worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(placeOf((event.notification.data as { link?: unknown } | null)?.link)));
});
