/**
 * Browsers that are logged in to the dashboard. A link opens it once, within minutes, and the row of the link becomes the session in
 * the change that uses it up. A session is proved by two secrets: a cookie, which scripts can't read, and a key, which only scripts of
 * the dashboard's own origin have. Cookies go to every port of 127.0.0.1, also to one that leads into a sandbox: alone, a cookie opens
 * nothing. The database holds hashes.
 */
import { createHash, randomBytes } from "node:crypto";
import type { AuditEntry } from "../../base/schema/audit.ts";
import { OWNER } from "../../base/schema/audit.ts";
import type { DashboardSession } from "../../base/schema/dashboard.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SessionRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";
import type { Audit } from "../audit/audit.ts";

/** What a browser gets when it logs in; the server keeps the hashes. */
export interface OpenedSession {
  readonly session: DashboardSession;
  readonly cookie: string;
  readonly key: string;
}

const BROWSER_CHARACTERS = 120;

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isOver({ expiresAt }: Pick<SessionRow, "expiresAt">, now: number): boolean {
  return Date.parse(expiresAt) <= now;
}

/** A row without its hashes. */
function shown({ id, state, mayAnswer, browser, createdAt, openedAt, seenAt, expiresAt }: SessionRow): DashboardSession {
  return { id, state, mayAnswer, browser, createdAt, openedAt, seenAt, expiresAt };
}

export class Sessions {
  readonly #store: Store;
  readonly #audit: Audit;
  readonly #now: () => number;
  /** All rows by their id: there are few. What is written to the store is in here right after. */
  readonly #rows = new Map<string, SessionRow>();
  readonly #ends = new Map<string, AbortController>();
  /** When logins failed lately. */
  #failed: number[] = [];

  private constructor(store: Store, audit: Audit, now: () => number) {
    this.#store = store;
    this.#audit = audit;
    this.#now = now;
  }

  static async open(store: Store, audit: Audit, now: () => number = Date.now): Promise<Sessions> {
    const sessions = new Sessions(store, audit, now);
    for (const row of await store.sessions.list()) sessions.#rows.set(row.id, row);
    await sessions.#forget();
    return sessions;
  }

  /** The port that browsers know which are logged in; undefined where there is none. */
  get port(): number | undefined {
    const open = [...this.#rows.values()].filter((row) => row.state === "open" && !isOver(row, this.#now()));
    return open.toSorted((one, other) => (one.createdAt > other.createdAt ? -1 : 1))[0]?.port;
  }

  /** What a link carries. It can be used once. */
  async link(port: number, mayAnswer: boolean): Promise<{ readonly secret: string; readonly session: DashboardSession }> {
    await this.#forget();
    if (this.#rows.size >= LIMITS.maxSessions)
      throw new VivError("no_capacity", "Too many browsers are logged in to the dashboard.", {
        remedy: "Log some out: `viv open --sessions` lists them, `viv open --end ID` ends one.",
      });
    const secret = randomBytes(32).toString("base64url");
    const now = this.#now();
    const row: SessionRow = {
      id: newId("session"),
      state: "link",
      mayAnswer,
      browser: null,
      createdAt: new Date(now).toISOString(),
      openedAt: null,
      seenAt: null,
      expiresAt: new Date(now + LIMITS.linkMs).toISOString(),
      secretHash: hash(secret),
      keyHash: null,
      port,
    };
    await this.#write(row, { action: "dashboard.link", reason: mayAnswer ? "The person in the browser may answer questions." : null });
    return { secret, session: shown(row) };
  }

  /** Uses a link up. */
  async login(secret: string, browser: string | undefined): Promise<OpenedSession> {
    const now = this.#now();
    this.#failed = this.#failed.filter((at) => now - at < LIMITS.failedLoginsMs);
    if (this.#failed.length >= LIMITS.failedLogins)
      throw new VivError("rate_limited", "Too many logins have failed.", {
        remedy: "Wait a minute, then open a new link with `viv open`.",
      });
    const [cookie, key] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
    const opened = await this.#audit.recordWith<SessionRow | undefined>(async (change) => {
      const link = await change.sessions.find({ secretHash: hash(secret) });
      if (link === undefined || link.state !== "link" || isOver(link, now)) return { result: undefined };
      const row: SessionRow = {
        ...link,
        state: "open",
        browser: browser?.slice(0, BROWSER_CHARACTERS) ?? null,
        openedAt: new Date(now).toISOString(),
        seenAt: new Date(now).toISOString(),
        expiresAt: new Date(now + LIMITS.sessionMs).toISOString(),
        secretHash: hash(cookie),
        keyHash: hash(key),
      };
      await change.sessions.put(row);
      return { entry: entryOf(row, { action: "dashboard.login", reason: null }), result: row };
    });
    if (opened === undefined) {
      this.#failed.push(now);
      throw new VivError("unauthorized", "This link was used already, or is too old.", { remedy: "Open a new one with `viv open`." });
    }
    this.#rows.set(opened.id, opened);
    return { session: shown(opened), cookie, key };
  }

  /** The session that both secrets prove. */
  check(cookie: string, key: string): DashboardSession | undefined {
    const [cookieHash, keyHash] = [hash(cookie), hash(key)];
    const row = [...this.#rows.values()].find((one) => one.state === "open" && one.secretHash === cookieHash && one.keyHash === keyHash);
    if (row === undefined || isOver(row, this.#now())) return undefined;
    this.#seen(row);
    return shown(row);
  }

  /** Whether this is the key of a browser whose person may answer questions. */
  isPerson(key: string): boolean {
    const keyHash = hash(key);
    return [...this.#rows.values()].some((row) => row.mayAnswer && row.keyHash === keyHash && !isOver(row, this.#now()));
  }

  /** The session of the browser that has this key. */
  withKey(key: string): { readonly id: string } | undefined {
    const keyHash = hash(key);
    return [...this.#rows.values()].find((row) => row.state === "open" && row.keyHash === keyHash && !isOver(row, this.#now()));
  }

  isOpen(id: string): boolean {
    const row = this.#rows.get(id);
    return row !== undefined && row.state === "open" && !isOver(row, this.#now());
  }

  list(): DashboardSession[] {
    const rows = [...this.#rows.values()].filter((row) => !isOver(row, this.#now()));
    return rows.toSorted((one, other) => (one.createdAt > other.createdAt ? -1 : 1)).map(shown);
  }

  async end(id: string): Promise<void> {
    const row = this.#rows.get(id);
    if (row === undefined) throw new VivError("not_found", `There is no session ${id}.`, { remedy: "Look at `viv open --sessions`." });
    await this.#audit.recordWith(async (change) => {
      await change.sessions.remove(id);
      return { entry: entryOf(row, { action: "dashboard.logout", reason: null }), result: undefined };
    });
    this.#drop(id);
  }

  /** Aborts when the session is ended: what is open then is cut off. */
  ending(id: string): AbortSignal {
    const found = this.#ends.get(id) ?? new AbortController();
    this.#ends.set(id, found);
    return found.signal;
  }

  #drop(id: string): void {
    this.#rows.delete(id);
    this.#ends.get(id)?.abort();
    this.#ends.delete(id);
  }

  async #write(row: SessionRow, told: Pick<AuditEntry, "action" | "reason">): Promise<void> {
    await this.#audit.recordWith(async (change) => {
      await change.sessions.put(row);
      return { entry: entryOf(row, told), result: undefined };
    });
    this.#rows.set(row.id, row);
  }

  /** Written rarely: it is there for people who look at the list. */
  #seen(row: SessionRow): void {
    const now = this.#now();
    if (row.seenAt !== null && now - Date.parse(row.seenAt) < LIMITS.sessionSeenEveryMs) return;
    const seen = { ...row, seenAt: new Date(now).toISOString() };
    this.#rows.set(row.id, seen);
    const write = this.#store.change(async (change) => {
      if ((await change.sessions.get(row.id)) !== undefined) await change.sessions.put(seen);
    });
    // The request goes on without it; the next one tries again after the pause.
    write.catch(() => undefined);
  }

  async #forget(): Promise<void> {
    const over = [...this.#rows.values()].filter((row) => isOver(row, this.#now()));
    if (over.length === 0) return;
    await this.#store.change(async (change) => {
      for (const { id } of over) await change.sessions.remove(id);
    });
    for (const { id } of over) this.#drop(id);
  }
}

function entryOf({ id, mayAnswer, browser }: SessionRow, told: Pick<AuditEntry, "action" | "reason">): AuditEntry {
  return {
    ...told,
    actor: OWNER,
    target: id,
    arguments: { mayAnswer, browser },
    label: "RECORDED",
    rule: null,
    sandbox: null,
    snapshot: null,
  };
}
