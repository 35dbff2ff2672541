/** What firings may spend on models: sums of a night, with what those at work may still spend. */
import type { AutomationSpec, AutomationsConfig } from "../../base/schema/automation.ts";
import type { FiringRow } from "../../base/store/rows.ts";
import type { Store } from "../../base/store/store.ts";

/** Nights begin at noon somewhere: what is older than this belongs to none that goes on. */
const KEPT_MS = 48 * 3_600_000;

/** Dollars of one automation, and of all. */
export interface Dollars {
  readonly own: number;
  readonly all: number;
}

interface Spent {
  readonly automation: string;
  /** When it was given its turn: it may have waited since the night before. */
  readonly at: number;
  readonly cost: number;
}

/** What each firing of the last days cost. Read from the store once, when it is asked for first. */
export class Spending {
  readonly #store: Store;
  readonly #firings = new Map<string, Spent>();
  #read: Promise<void> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** A firing that is at work no more. */
  note(row: FiringRow): void {
    const at = row.steps.find(({ state }) => state === "triaged")?.at;
    if (at !== undefined && row.cost > 0) this.#firings.set(row.id, { automation: row.automation, at: Date.parse(at), cost: row.cost });
  }

  async since(began: Date, automation: string): Promise<Dollars> {
    this.#read ??= this.#readAll(began.getTime() - KEPT_MS).catch((error: unknown) => {
      this.#read = undefined;
      throw error;
    });
    await this.#read;
    let own = 0;
    let all = 0;
    for (const [id, spent] of this.#firings) {
      if (spent.at < began.getTime() - KEPT_MS) this.#firings.delete(id);
      if (spent.at < began.getTime()) continue;
      all += spent.cost;
      if (spent.automation === automation) own += spent.cost;
    }
    return { own, all };
  }

  async #readAll(from: number): Promise<void> {
    for (const row of await this.#store.firings.list()) {
      // Those at work are noted when they are over.
      const isOver = row.state === "waiting" || Date.parse(row.endedAt ?? "") >= from;
      if (isOver && !this.#firings.has(row.id)) this.note(row);
    }
  }
}

/** What firings at work may still spend: their budgets, until what they did spend is known. */
export function reservedBy(rows: readonly FiringRow[], automation: string): Dollars {
  const sum = (some: readonly FiringRow[]): number => some.reduce((total, row) => total + Math.max(row.cost, reserved(row)), 0);
  return { own: sum(rows.filter((row) => row.automation === automation)), all: sum(rows) };
}

function reserved({ state, budget = 0 }: FiringRow): number {
  return state === "triaged" || state === "working" ? budget : 0;
}

/** The most that the agent of a firing may spend; undefined where nothing bounds it, or no agent works. */
export function budgetOf({ task, budget }: AutomationSpec, config: AutomationsConfig, spent: Dollars, held: Dollars): number | undefined {
  if (task === undefined) return undefined;
  const bounds = [
    ...(budget.run === undefined ? [] : [budget.run]),
    ...(budget.night === undefined ? [] : [budget.night - spent.own - held.own]),
    ...(config.budget === undefined ? [] : [config.budget - spent.all - held.all]),
  ];
  return bounds.length === 0 ? undefined : Math.min(...bounds);
}
