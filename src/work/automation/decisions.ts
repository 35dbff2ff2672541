/** What people decide about the promotions of firings: one that waits is approved or refused, one that stands is taken back. */
import { errorText, type Logger } from "../../base/host/log.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { FiringRow, PromotionRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";
import type { Clock } from "./clock.ts";
import { idIn } from "./experiment-ends.ts";
import { advanced, putFiring } from "./firing-record.ts";

const ENDS = new Set(["promotion.applied", "promotion.discarded", "promotion.failed", "promotion.undone"]);
const UNDER_WAY: ReadonlySet<string | undefined> = new Set(["waiting", "applying", "planning"]);

export class Decisions {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Firings that wait for a person, by their promotion. */
  readonly #proposed = new Map<string, string>();
  readonly #leave: () => void;

  constructor(store: Store, clock: Clock, log: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#leave = store.onEvents((events) => this.#hear(events));
  }

  /** After a start of the server: what was decided while no server could note it. */
  async resume(): Promise<void> {
    for (const row of await this.#store.firings.list({ state: "waiting" })) await this.#settle(row);
    for (const row of await this.#store.firings.list({ state: "promoted" }, { limit: LIMITS.listedFirings })) await this.#look(row);
  }

  /** A firing that is at work no more: the person may have been quicker. */
  over(row: FiringRow): void {
    this.#note(row.id, row.state === "waiting" ? this.#settle(row) : this.#look(row));
  }

  #hear(events: readonly VivEvent[]): void {
    for (const { type, data } of events) {
      if (!ENDS.has(type)) continue;
      const promotion = idIn(data["promotion"]);
      const proposed = this.#proposed.get(promotion);
      if (proposed !== undefined) this.#note(proposed, this.#settleProposed(proposed));
      else if (type === "promotion.undone") this.#note(promotion, this.#findTakenBack(promotion, idIn(data["project"])));
    }
  }

  #note(about: string, work: Promise<void>): void {
    work.catch((error: unknown) => this.#log.warn("a firing was not told of its promotion", { about, error: errorText(error) }));
  }

  async #settleProposed(firing: string): Promise<void> {
    const row = await this.#store.firings.get(firing);
    if (row !== undefined) await this.#settle(row);
  }

  async #findTakenBack(promotion: string, project: string): Promise<void> {
    const rows = await this.#store.firings.list({ project, state: "promoted" });
    const row = rows.find((each) => each.promotion === promotion);
    if (row !== undefined) await this.#look(row);
  }

  /** Says of a firing that waited what the person decided. A promotion that a person approved is theirs: it is not judged again. */
  async #settle(row: FiringRow): Promise<void> {
    const id = row.promotion ?? "";
    this.#proposed.set(id, row.id);
    const promotion = await this.#store.promotions.get(id);
    if (UNDER_WAY.has(promotion?.state)) return;
    this.#proposed.delete(id);
    const isApplied = promotion?.state === "applied" || promotion?.state === "undone";
    const settled = await this.#store.change(async (change) => {
      const now = await change.firings.get(row.id);
      if (now?.state !== "waiting") return now;
      const at = this.#now;
      const reason = isApplied ? "A person approved it." : `It was not promoted: ${promotion?.reason ?? "its promotion is gone."}`;
      const next = { ...advanced(now, isApplied ? "promoted" : "failed", reason, at), endedAt: at.toISOString() };
      await putFiring(change, next);
      return next;
    });
    if (settled !== undefined) await this.#look(settled);
  }

  /** Says of a firing whose promotion a person took back that it was. One that is still judged says so by itself. */
  async #look(row: FiringRow): Promise<void> {
    if (row.state !== "promoted" || row.endedAt === null || row.promotion === null) return;
    const promotion = await this.#store.promotions.get(row.promotion);
    if (promotion?.state !== "undone") return;
    const undo = await this.#undoOf(promotion);
    await this.#store.change(async (change) => {
      const now = await change.firings.get(row.id);
      if (now?.state !== "promoted" || now.endedAt === null) return;
      await putFiring(change, advanced(now, "undone", "A person took it back.", this.#now, { undo }));
    });
  }

  async #undoOf({ id, project }: PromotionRow): Promise<string | null> {
    const rows = await this.#store.promotions.list({ project });
    return rows.find(({ undoes, state }) => undoes === id && state === "applied")?.id ?? null;
  }

  get #now(): Date {
    return new Date(this.#clock.now());
  }

  close(): void {
    this.#leave();
  }
}
