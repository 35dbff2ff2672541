/**
 * Browsers that were let in to previews. A link carries a ticket, which works once, within minutes, at its own origin; the browser gets a
 * cookie of that origin for it. A preview that was opened from the dashboard ends with the session there. The database holds hashes.
 */
import { createHash, randomBytes } from "node:crypto";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PreviewPlace } from "../../base/schema/preview.ts";
import type { PreviewRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";
import type { Sessions } from "./sessions.ts";

/** What a ticket opens, and how. */
export interface PreviewOpening {
  readonly place: PreviewPlace;
  /** Path and query that are shown first. */
  readonly path: string;
  readonly frame: boolean;
}

interface Ticket extends PreviewOpening {
  readonly session: string | null;
  readonly expiresAt: number;
}

/** A browser that is in. */
export interface PreviewVisitor {
  readonly frame: boolean;
  /** Aborts when it is out. */
  readonly ending: AbortSignal;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isAt(one: PreviewPlace, other: PreviewPlace): boolean {
  return one.sandbox === other.sandbox && one.door === other.door;
}

export class Previews {
  readonly #store: Store;
  readonly #sessions: Sessions;
  readonly #now: () => number;
  /** By the hash of what the link carries; the oldest first. A server that starts anew knows none. */
  readonly #tickets = new Map<string, Ticket>();
  /** By the hash of the cookie; the oldest first. */
  readonly #rows = new Map<string, PreviewRow>();
  /** By the id of the row. */
  readonly #ends = new Map<string, { readonly own: AbortController; readonly signal: AbortSignal }>();

  private constructor(store: Store, sessions: Sessions, now: () => number) {
    this.#store = store;
    this.#sessions = sessions;
    this.#now = now;
  }

  static async open(store: Store, sessions: Sessions, now: () => number = Date.now): Promise<Previews> {
    const previews = new Previews(store, sessions, now);
    for (const row of await store.previews.list()) previews.#rows.set(row.secretHash, row);
    await previews.#drop((row) => !previews.#isIn(row));
    return previews;
  }

  /** What a link carries. `key` is of the browser that asks; one that is not logged in is refused. */
  ticket(opening: PreviewOpening, key: string | undefined): { readonly secret: string; readonly expiresAt: string } {
    const session = key === undefined ? null : this.#sessions.withKey(key)?.id;
    if (session === undefined)
      throw new VivError("unauthorized", "This browser is not logged in.", { remedy: "Open a new link with `viv open`." });
    const secret = randomBytes(32).toString("base64url");
    const expiresAt = this.#now() + LIMITS.previewLinkMs;
    for (const [known, { expiresAt: until }] of this.#tickets)
      if (until <= this.#now() || this.#tickets.size >= LIMITS.maxPreviewLinks) this.#tickets.delete(known);
    this.#tickets.set(hash(secret), { ...opening, session, expiresAt });
    return { secret, expiresAt: new Date(expiresAt).toISOString() };
  }

  /** Uses a ticket up, at the origin that it is for. */
  async enter(secret: string, place: PreviewPlace): Promise<{ readonly cookie: string; readonly path: string; readonly frame: boolean }> {
    const ticket = this.#tickets.get(hash(secret));
    if (ticket === undefined || ticket.expiresAt <= this.#now() || !isAt(ticket.place, place))
      throw new VivError("unauthorized", "This link was used already, or is too old.", {
        remedy: "Open the preview again, from the dashboard or with `viv port SANDBOX PORT --open`.",
      });
    this.#tickets.delete(hash(secret));
    const { path, frame, session } = ticket;
    const cookie = randomBytes(32).toString("hex");
    const now = this.#now();
    const row: PreviewRow = {
      ...place,
      id: newId("preview"),
      frame,
      session,
      secretHash: hash(cookie),
      createdAt: new Date(now).toISOString(),
      expiresAt: new Date(now + (session === null ? LIMITS.previewMs : LIMITS.sessionMs)).toISOString(),
    };
    // A browser has one cookie for tabs of an origin and one for frames: its new one takes the place of the old one.
    const isReplaced = (one: PreviewRow): boolean =>
      one.session !== null && one.session === session && one.frame === frame && isAt(one, row);
    const surplus = [...this.#rows.values()].slice(0, Math.max(0, this.#rows.size + 1 - LIMITS.maxPreviews));
    await this.#store.change((change) => change.previews.put(row));
    this.#rows.set(row.secretHash, row);
    await this.#drop((one) => one.id !== row.id && (isReplaced(one) || surplus.includes(one) || !this.#isIn(one)), { quietly: true });
    return { cookie, path, frame };
  }

  /** The browser that one of these cookies proves to be in. */
  check(cookies: readonly string[], place: PreviewPlace): PreviewVisitor | undefined {
    const row = cookies
      .map((cookie) => this.#rows.get(hash(cookie)))
      .find((one) => one !== undefined && isAt(one, place) && this.#isIn(one));
    return row === undefined ? undefined : { frame: row.frame, ending: this.#ending(row) };
  }

  /** Shuts all browsers out of a sandbox's previews. */
  async close(sandbox: string): Promise<void> {
    for (const [key, { place }] of this.#tickets) if (place.sandbox === sandbox) this.#tickets.delete(key);
    await this.#drop((row) => row.sandbox === sandbox);
  }

  #isIn({ expiresAt, session }: PreviewRow): boolean {
    return Date.parse(expiresAt) > this.#now() && (session === null || this.#sessions.isOpen(session));
  }

  #ending({ id, session }: PreviewRow): AbortSignal {
    const known = this.#ends.get(id);
    if (known !== undefined) return known.signal;
    const own = new AbortController();
    const signal = session === null ? own.signal : AbortSignal.any([own.signal, this.#sessions.ending(session)]);
    this.#ends.set(id, { own, signal });
    return signal;
  }

  /** `quietly`: connections that are open go on, because they are of a browser that is still in. */
  async #drop(isOut: (row: PreviewRow) => boolean, { quietly = false } = {}): Promise<void> {
    const out = [...this.#rows.values()].filter(isOut);
    if (out.length === 0) return;
    for (const row of out) {
      this.#rows.delete(row.secretHash);
      if (!quietly) this.#ends.get(row.id)?.own.abort();
      this.#ends.delete(row.id);
    }
    await this.#store.change(async (change) => {
      for (const { id } of out) await change.previews.remove(id);
    });
  }
}
