/**
 * What is spent, and whether more may be. The sums lie in the store. A request is booked before it is sent, with the most it may cost,
 * and corrected when its answer is there: a server that is killed meanwhile has counted too much, never too little.
 */
import { VivError } from "../../base/schema/errors.ts";
import type { BudgetsConfig, PricesConfig } from "../../base/schema/model.ts";
import type { Read, Store, UsageFilter } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { costOf, NO_TOKENS, priceOf, type Tokens } from "./prices.ts";

export interface BookedCost {
  /** Replaces the estimate; nothing where the answer was an error that costs nothing. */
  settle(tokens: Tokens): Promise<void>;
}

interface PendingCost {
  readonly scopes: Readonly<Record<keyof BudgetsConfig, string | null>>;
  readonly microDollars: number;
}

type Payer = Pick<SandboxRow, "id" | "name" | "project" | "labels">;

const MICRO = 1_000_000;

export class Accounts {
  readonly #store: Store;
  readonly #budgets: BudgetsConfig;
  readonly #prices: PricesConfig;
  /** Answers under way: what of the sums they hold. */
  readonly #pending = new Set<PendingCost>();

  constructor(store: Store, budgets: BudgetsConfig, prices: PricesConfig) {
    this.#store = store;
    this.#budgets = budgets;
    this.#prices = prices;
  }

  async book(
    payer: Payer,
    provider: string,
    asked: { readonly model: string; readonly inputTokens: number; readonly outputTokens: number; readonly factor: number },
  ): Promise<BookedCost> {
    const day = new Date().toISOString().slice(0, 10);
    const task = payer.labels["task"] ?? payer.labels["experiment"] ?? null;
    const scopes = { sandbox: payer.id, task, project: payer.project, day };
    const price = { ...priceOf(asked.model, this.#prices), factor: asked.factor };
    const estimate: Tokens = { ...NO_TOKENS, input: asked.inputTokens };
    const most = costOf({ ...estimate, output: asked.outputTokens }, price);
    const pending: PendingCost = { scopes, microDollars: most };
    const add = (requests: number, tokens: Tokens, microDollars: number) => ({
      sandbox: payer.id,
      name: payer.name,
      task,
      project: payer.project,
      day,
      provider,
      model: asked.model,
      requests,
      inputTokens: tokens.input,
      outputTokens: tokens.output,
      cacheReadTokens: tokens.cacheRead,
      cacheWriteTokens: tokens.cacheWrite,
      microDollars,
    });
    try {
      // One transaction, so that no two requests see the same rest of a budget.
      await this.#store.change(async (change) => {
        for (const scope of ["sandbox", "task", "project", "day"] as const) await this.#refuse(change, scope, scopes);
        await change.usage.add(add(1, estimate, most));
        this.#pending.add(pending);
      });
    } catch (error) {
      this.#pending.delete(pending);
      throw error;
    }
    return {
      settle: async (tokens) => {
        const missing = { ...minus(tokens, estimate) };
        try {
          await this.#store.change((change) => change.usage.add(add(0, missing, costOf(tokens, price) - most)));
        } finally {
          this.#pending.delete(pending);
        }
      },
    };
  }

  async #refuse({ usage }: Pick<Read, "usage">, scope: keyof BudgetsConfig, scopes: PendingCost["scopes"]): Promise<void> {
    const budget = this.#budgets[scope];
    const value = scopes[scope];
    if (budget === undefined || value === null) return;
    const filter: UsageFilter = { [scope]: value };
    const booked = await usage.spent(filter);
    const held = [...this.#pending].filter(({ scopes: theirs }) => theirs[scope] === value).reduce((sum, one) => sum + one.microDollars, 0);
    if (booked - held >= budget * MICRO)
      throw new VivError(
        "budget_exceeded",
        `The budget of this ${scope} is used up: ${dollars(booked - held)} of $${budget} are spent on models. Raise budgets.${scope} in Vivarium's user config to go on.`,
      );
    if (booked >= budget * MICRO)
      throw new VivError(
        "rate_limited",
        `The rest of this ${scope}'s budget is held by requests under way; try again when they are answered.`,
      );
  }
}

function minus(one: Tokens, other: Tokens): Tokens {
  return {
    input: one.input - other.input,
    output: one.output - other.output,
    cacheRead: one.cacheRead - other.cacheRead,
    cacheWrite: one.cacheWrite - other.cacheWrite,
    cacheWriteLong: one.cacheWriteLong - other.cacheWriteLong,
  };
}

function dollars(micro: number): string {
  return `$${(micro / MICRO).toFixed(4)}`;
}
