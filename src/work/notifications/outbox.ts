/**
 * Notifications on their way: a row for each and each channel, kept before the first try and until it is sent, given up or of no use
 * any more. A try is noted before it is made, so that a server that dies in it makes the next one after a pause. Channels work beside
 * each other: one that is slow or gone holds up no other, and nothing but notifications waits for any of them.
 */
import { createHash } from "node:crypto";
import { errorText, type Logger } from "../../base/host/log.ts";
import { Patience } from "../../base/host/patience.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Notification } from "../../base/schema/notification.ts";
import type { NotificationRow } from "../../base/store/rows.ts";
import type { Change, Store } from "../../base/store/store.ts";
import type { Channel, Outcome } from "./channel.ts";

const FIRST_PAUSE_MS = 5_000;
const MOST_PAUSE_MS = 4 * 3_600_000;
const PAUSE_GROWS = 4;
/** Of one channel; the oldest gives way. */
const MOST_WAITING = 200;

export interface OutboxParts {
  readonly store: Store;
  readonly log: Logger;
  /** The channel of this name; undefined where there is none any more. */
  readonly channel: (name: string) => Promise<Channel | undefined>;
  /** Called when a channel says that its receiver is gone for good. */
  readonly onGone: (name: string) => Promise<void>;
  /** Whether a person need not be told any more. */
  readonly isSettled: (row: NotificationRow) => Promise<boolean>;
  /** Address of a page of the dashboard. */
  readonly urlOf: (link: string) => string;
  /** Called at named points; tests kill the process there. */
  readonly reach: (point: string) => void;
  /** Tests shorten the pauses. */
  readonly firstPauseMs?: number;
}

export class Outbox {
  readonly #all: OutboxParts;
  readonly #firstPauseMs: number;
  readonly #closing = new AbortController();
  readonly #patience: Patience;
  /** Rows that are being tried, by their ids. */
  readonly #busy = new Map<string, { readonly channel: string; readonly ended: Promise<void> }>();
  readonly #waiters = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;

  constructor(all: OutboxParts) {
    this.#all = all;
    this.#firstPauseMs = all.firstPauseMs ?? FIRST_PAUSE_MS;
    this.#patience = new Patience(all.log, { part: "notifications" });
  }

  /** Keeps it for these channels, once each. It is sent after the change is committed and `look` was called. */
  async add(
    change: Change,
    notification: Notification,
    channels: readonly string[],
    more: Pick<NotificationRow, "waitsFor">,
  ): Promise<void> {
    for (const channel of channels) {
      const id = `${notification.id}.${channel}`;
      if ((await change.notifications.get(id)) !== undefined) continue;
      await this.#makeRoom(change, channel);
      const created = { id, notification, channel, ...more, createdAt: notification.at, endedAt: null };
      await change.notifications.put({ ...created, state: "waiting", tries: 0, nextAt: notification.at, reason: null });
    }
    await this.#forget(change);
  }

  async #makeRoom(change: Change, channel: string): Promise<void> {
    const waiting = await change.notifications.list({ state: "waiting", channel });
    const oldest = waiting.find(({ id }) => !this.#busy.has(id));
    if (waiting.length < MOST_WAITING || oldest === undefined) return;
    await change.notifications.put(ended(oldest, "dropped", "Too many wait for this channel."));
  }

  async #forget(change: Change): Promise<void> {
    const over = (await change.notifications.count()) - LIMITS.notificationsKept;
    if (over <= 0) return;
    const rows = await change.notifications.list();
    for (const row of rows.filter(({ state }) => state !== "waiting").slice(0, over)) await change.notifications.remove(row.id);
  }

  /** Tries what is due, now and whenever something is due later. */
  look(): void {
    if (this.#closing.signal.aborted) return;
    this.#lookAgain = true;
    this.#looking ??= this.#lookNow().finally(() => (this.#looking = undefined));
  }

  async #lookNow(): Promise<void> {
    while (this.#lookAgain && !this.#closing.signal.aborted) {
      this.#lookAgain = false;
      try {
        this.#begin(await this.#all.store.notifications.list({ state: "waiting" }));
      } catch (error) {
        this.#all.log.warn("notifications can't be read", { error: errorText(error) });
        this.#wakeIn(this.#firstPauseMs);
      }
    }
  }

  #begin(rows: readonly NotificationRow[]): void {
    const now = Date.now();
    let soonest = Number.POSITIVE_INFINITY;
    for (const row of rows) {
      if (this.#busy.has(row.id)) continue;
      const at = Date.parse(row.nextAt ?? row.createdAt);
      const inChannel = [...this.#busy.values()].filter(({ channel }) => channel === row.channel).length;
      if (at > now) soonest = Math.min(soonest, at);
      else if (inChannel < LIMITS.notificationsAtOnce) this.#busy.set(row.id, { channel: row.channel, ended: this.#try(row) });
    }
    if (Number.isFinite(soonest)) this.#wakeIn(soonest - now);
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), Math.min(ms, MOST_PAUSE_MS)).unref();
  }

  async #try(row: NotificationRow): Promise<void> {
    try {
      await this.#patience.until(() => this.#tryOnce(row));
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#all.log.warn("notification not noted", { id: row.id, error: errorText(error) });
    } finally {
      this.#busy.delete(row.id);
      for (const wake of this.#waiters) wake();
      this.look();
    }
  }

  async #tryOnce(row: NotificationRow): Promise<void> {
    const channel = await this.#all.channel(row.channel);
    if (channel === undefined) return this.#put(ended(row, "dropped", "There is no such channel any more."));
    if (await this.#all.isSettled(row)) return this.#put(ended(row, "dropped", "It was settled meanwhile."));
    if (Date.now() - Date.parse(row.createdAt) > LIMITS.notificationsMs)
      return this.#put(ended(row, "failed", row.reason ?? "It waited for too long."));
    const begun: NotificationRow = { ...row, tries: row.tries + 1, nextAt: new Date(Date.now() + this.#pause(row.tries)).toISOString() };
    await this.#put(begun);
    this.#all.reach("notification.begun");
    const outcome = await this.#send(channel, begun);
    this.#all.reach("notification.sent");
    // Sent, and not to be sent again for want of room on the disk to say so.
    await this.#patience.until(() => this.#put(this.#after(begun, outcome)));
    if (!outcome.sent && outcome.gone === true) await this.#all.onGone(row.channel);
  }

  async #send(channel: Channel, { notification }: NotificationRow): Promise<Outcome> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(LIMITS.notificationSendMs)]);
    try {
      return await channel.send({ ...notification, url: this.#all.urlOf(notification.link) }, signal);
    } catch (error) {
      return { sent: false, reason: errorText(error).slice(0, 300), again: true };
    }
  }

  #after(row: NotificationRow, outcome: Outcome): NotificationRow {
    if (outcome.sent) return ended(row, "sent", null);
    if (!outcome.again || row.tries >= LIMITS.notificationTries) return ended(row, "failed", outcome.reason);
    const at = Date.now() + Math.max(outcome.afterMs ?? 0, this.#pause(row.tries - 1));
    return { ...row, reason: outcome.reason, nextAt: new Date(at).toISOString() };
  }

  #pause(tries: number): number {
    return Math.min(this.#firstPauseMs * PAUSE_GROWS ** tries, MOST_PAUSE_MS);
  }

  #put(row: NotificationRow): Promise<void> {
    return this.#all.store.change((change) => change.notifications.put(row));
  }

  /** Resolves once each of these rows was tried once, or the signal ends the wait. */
  async tried(ids: readonly string[], signal: AbortSignal): Promise<NotificationRow[]> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.add(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      const rows = (await Promise.all(ids.map((id) => this.#all.store.notifications.get(id)))).filter((row) => row !== undefined);
      const over = rows.every((row) => row.state !== "waiting" || (row.tries > 0 && !this.#busy.has(row.id)));
      if (!over && !signal.aborted) await promise;
      this.#waiters.delete(resolve);
      if (over || signal.aborted) return rows;
    }
  }

  /** What is being sent is given up, and sent by the next server. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#patience.giveUp();
    clearTimeout(this.#timer);
    await Promise.all([this.#looking, ...[...this.#busy.values()].map(({ ended: over }) => over)]);
  }
}

function ended(row: NotificationRow, state: "sent" | "failed" | "dropped", reason: string | null): NotificationRow {
  return { ...row, state, reason, nextAt: null, endedAt: new Date().toISOString() };
}

/** The same key gives the same id. Short enough for the topic of a push message (32 letters). */
export function idOfKey(key: string): string {
  return `ntf${createHash("sha256").update(key).digest("base64url").slice(0, 26)}`;
}
