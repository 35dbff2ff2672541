/**
 * The face of this folder: tells people of what needs them, and of what is done, while they look at no page. It reads the log of
 * events from where it stopped, and notes what it made of them in the change that says how far it has read: a server that is killed
 * forgets none and tells of none twice. Other parts tell of more by `notify`.
 */
import { randomUUID } from "node:crypto";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { ParsedOf, OutputOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Notification } from "../../base/schema/notification.ts";
import type { NotificationRow } from "../../base/store/rows.ts";
import type { Change, Store } from "../../base/store/store.ts";
import type { Ways } from "./ways.ts";
import { idOfKey, Outbox, type OutboxParts } from "./outbox.ts";
import { isSettled, isTold, notificationOf, shortened, type NewNotification } from "./told.ts";

const BOOKMARK = "notifications";
const PAGE_ROWS = 200;
/** Events without anything to tell of after which it is noted all the same how far was read. */
const NOTE_EVERY = 2_000;
const AGAIN_MS = 5_000;
const MINUTE_MS = 60_000;

export interface NotificationsParts extends Pick<OutboxParts, "urlOf" | "reach" | "firstPauseMs"> {
  readonly store: Store;
  readonly log: Logger;
  readonly ways: Ways;
}

export class Notifications {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #ways: Ways;
  readonly #outbox: Outbox;
  readonly #reach: (point: string) => void;
  #read = 0;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  #closed = false;
  #stopListening: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  /** When notifications were made lately. */
  #lately: number[] = [];

  private constructor(all: NotificationsParts) {
    this.#store = all.store;
    this.#log = all.log;
    this.#ways = all.ways;
    this.#reach = all.reach;
    this.#outbox = new Outbox({
      ...all,
      channel: (name) => all.ways.channel(name),
      onGone: (name) => all.ways.forget(name),
      isSettled: async ({ waitsFor }) => waitsFor !== undefined && isSettled(all.store, waitsFor, Date.now()),
    });
  }

  /** What an earlier server left on its way goes on. */
  static async open(all: NotificationsParts): Promise<Notifications> {
    const notifications = new Notifications(all);
    notifications.#read = await all.store.change(async (change) => {
      const kept = await change.bookmarks.get(BOOKMARK);
      if (kept !== undefined) return kept.event;
      // What happened before there was anything to tell it by is history.
      const { newest } = await change.events.range();
      await change.bookmarks.put({ id: BOOKMARK, event: newest });
      return newest;
    });
    notifications.#stopListening = all.store.onEvents((events) => {
      const last = events.at(-1)?.sequence ?? 0;
      if (events.some(isTold) || last - notifications.#read > NOTE_EVERY) notifications.#readOn();
    });
    notifications.#readOn();
    notifications.#outbox.look();
    return notifications;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    clearTimeout(this.#timer);
    await this.#reading;
    await this.#outbox.close();
  }

  /** Tells people, by the channels that want this kind. It is kept once this resolves. */
  async notify(told: NewNotification): Promise<void> {
    await this.#store.change((change) => this.#keep(change, told));
    this.#outbox.look();
  }

  #readOn(): void {
    if (this.#closed) return;
    this.#readAgain = true;
    this.#reading ??= this.#readEvents().finally(() => (this.#reading = undefined));
  }

  async #readEvents(): Promise<void> {
    try {
      while (this.#readAgain && !this.#closed) {
        this.#readAgain = false;
        while (!this.#closed && (await this.#readPage()));
      }
    } catch (error) {
      this.#log.warn("events for notifications can't be read", { error: errorText(error) });
      this.#timer = setTimeout(() => this.#readOn(), AGAIN_MS).unref();
    }
  }

  /** Whether there may be more. */
  async #readPage(): Promise<boolean> {
    const page = await this.#store.events.list({ after: this.#read, limit: PAGE_ROWS });
    const last = page.at(-1)?.sequence;
    if (last === undefined) return false;
    const told = page.filter(isTold);
    if (told.length > 0) this.#reach("notification.heard");
    await this.#store.change(async (change) => {
      for (const event of told) {
        const made = await notificationOf(change, event);
        if (made !== undefined) await this.#keep(change, made);
      }
      await change.bookmarks.put({ id: BOOKMARK, event: last });
    });
    this.#read = last;
    if (told.length > 0) this.#outbox.look();
    return page.length === PAGE_ROWS;
  }

  async #keep(change: Change, told: NewNotification): Promise<void> {
    const channels = await this.#ways.wanting(change, told.kind);
    if (channels.length === 0) return;
    const { notification, waitsFor } = this.#bounded(told);
    await this.#outbox.add(change, notification, channels, { waitsFor });
  }

  /** A program that asks without end is told of so many times a minute; the rest of that minute is one notification. */
  #bounded(told: NewNotification): { notification: Notification; waitsFor: string | undefined } {
    const now = Date.now();
    this.#lately = this.#lately.filter((at) => now - at < MINUTE_MS);
    const at = new Date(now).toISOString();
    if (this.#lately.length < LIMITS.notificationsPerMinute) {
      this.#lately.push(now);
      return { notification: { ...shortened(told), id: idOfKey(told.key ?? randomUUID()), at }, waitsFor: told.waitsFor };
    }
    const minute = Math.floor(now / MINUTE_MS);
    const text = "More happened within a minute than is told of one by one. The first page of the dashboard shows all of it.";
    const folded: NewNotification = { kind: told.kind, title: "More needs you", text, link: "/", project: null, run: null };
    return { notification: { ...shortened(folded), id: idOfKey(`more ${minute}`), at }, waitsFor: undefined };
  }

  async list(): Promise<OutputOf<"listNotifications">> {
    const rows = (await this.#store.notifications.list()).toReversed();
    const channels = await this.#ways.list();
    return {
      channels: channels.map((one) => {
        const own = rows.filter(({ channel }) => channel === one.name);
        const newest = own.find(({ tries }) => tries > 0);
        return {
          ...one,
          trouble: newest === undefined || newest.state === "sent" ? null : newest.reason,
          waiting: own.filter(({ state }) => state === "waiting").length,
          sentAt: own.find(({ state }) => state === "sent")?.endedAt ?? null,
        };
      }),
      browsers: await this.#ways.browsers.list(),
      pushKey: this.#ways.browsers.publicKey,
      deliveries: rows.slice(0, LIMITS.notificationsShown),
    };
  }

  async test({ channel }: ParsedOf<"testNotification">, signal: AbortSignal): Promise<{ deliveries: NotificationRow[] }> {
    const names = (await this.#ways.list()).map(({ name }) => name).filter((name) => channel === undefined || name === channel);
    if (names.length === 0)
      throw new VivError("not_found", channel === undefined ? "There is no way to a person yet." : `There is no channel ${channel}.`, {
        remedy:
          "Name channels in `notifications.channels` of your config, or subscribe a browser on the dashboard's page Machine, Notifications.",
      });
    const told = { kind: "test", title: "Vivarium: a test", text: "Notifications reach you here.", project: null, run: null } as const;
    const notification = { ...told, id: idOfKey(randomUUID()), link: "/machine?show=notifications", at: new Date().toISOString() };
    await this.#store.change((change) => this.#outbox.add(change, notification, names, { waitsFor: undefined }));
    this.#outbox.look();
    const patience = AbortSignal.any([signal, AbortSignal.timeout(LIMITS.notificationSendMs * 2)]);
    return {
      deliveries: await this.#outbox.tried(
        names.map((name) => `${notification.id}.${name}`),
        patience,
      ),
    };
  }
}
