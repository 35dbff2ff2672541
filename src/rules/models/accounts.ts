/**
 * What is spent, and whether more may be. The sums lie in the store. A request is booked before it is sent, with the most it may cost,
 * and corrected when its answer is there: a server that is killed meanwhile has counted too much, never too little.
 */
import type { BudgetsConfig } from "../../base/schema/model.ts";
import type { Read, Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { costOf, NO_TOKENS, priceOf, type Rate, type Tokens } from "./prices.ts";
import type { KnownProvider } from "./providers.ts";
import { Refusal } from "./refusal.ts";
import type { ModelSettings } from "./settings.ts";

export interface BookedCost {
  /** Replaces the estimate; nothing where the answer was an error that costs nothing. */
  settle(tokens: Tokens): Promise<void>;
}

interface PendingCost {
  readonly scopes: Readonly<Record<keyof BudgetsConfig, string | null>>;
  readonly microDollars: number;
}

export type Payer = Pick<SandboxRow, "id" | "name" | "project" | "labels">;

const MICRO = 1_000_000;
const FREE: Rate = { input: 0, output: 0 };

export class Accounts {
  readonly #store: Store;
  readonly #settings: Pick<ModelSettings, "budgets" | "prices">;
  /** Answers under way: what of the sums they hold. */
  readonly #pending = new Set<PendingCost>();

  constructor(store: Store, settings: Pick<ModelSettings, "budgets" | "prices">) {
    this.#store = store;
    this.#settings = settings;
  }

  async book(
    payer: Payer,
    { name: provider, isFree }: Pick<KnownProvider, "name" | "isFree">,
    asked: { readonly model: string; readonly inputTokens: number; readonly outputTokens: number; readonly factor: number },
  ): Promise<BookedCost> {
    const day = new Date().toISOString().slice(0, 10);
    const task = payer.labels["task"] ?? payer.labels["experiment"] ?? null;
    const scopes = { sandbox: payer.id, task, project: payer.project, day };
    const price = isFree ? FREE : { ...priceOf(asked.model, this.#settings.prices), factor: asked.factor };
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
        // What costs nothing is not held up by what was spent elsewhere.
        if (!isFree) await this.#refuseAll(change, scopes);
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

  async #refuseAll(reads: Pick<Read, "usage" | "runs">, scopes: PendingCost["scopes"]): Promise<void> {
    for (const scope of ["sandbox", "task", "project", "day"] as const) await this.#refuse(reads, scope, scopes);
    if (scopes.sandbox !== null) await this.#refuseRun(reads, scopes.sandbox);
  }

  async #refuse({ usage }: Pick<Read, "usage">, scope: keyof BudgetsConfig, scopes: PendingCost["scopes"]): Promise<void> {
    const budget = this.#settings.budgets[scope];
    const value = scopes[scope];
    if (budget === undefined || value === null) return;
    const booked = await usage.spent({ [scope]: value });
    refuseBeyond(scope, budget, booked, this.#heldBy(scope, value), `Raise budgets.${scope} in Vivarium's user config to go on.`);
  }

  /** What a person gave the agent that works there: for itself, and for those that it asks. */
  async #refuseRun({ usage, runs }: Pick<Read, "usage" | "runs">, sandbox: string): Promise<void> {
    const run = await runs.find({ sandbox });
    const budget = run?.budget ?? null;
    if (run === undefined || budget === null) return;
    const first = run.askedBy ?? run.id;
    const together = run.experiment === null ? [run] : await runs.list({ experiment: run.experiment });
    const payers = together.filter(({ id, askedBy }) => id === first || askedBy === first).flatMap((each) => each.sandbox ?? []);
    let [booked, held] = [0, 0];
    for (const payer of new Set([sandbox, ...payers])) {
      booked += await usage.spent({ sandbox: payer });
      held += this.#heldBy("sandbox", payer);
    }
    refuseBeyond("run", budget, booked, held, "Give the task again with a larger --budget.");
  }

  /** Of what is booked, the part of requests under way. */
  #heldBy(scope: keyof BudgetsConfig, value: string): number {
    const held = [...this.#pending].filter(({ scopes }) => scopes[scope] === value);
    return held.reduce((sum, one) => sum + one.microDollars, 0);
  }
}

function refuseBeyond(scope: string, budget: number, booked: number, held: number, remedy: string): void {
  if (booked - held >= budget * MICRO)
    throw new Refusal(
      "budget_used_up",
      `The budget of this ${scope} is used up: ${dollars(booked - held)} of $${budget} are spent on models. ${remedy}`,
    );
  if (booked >= budget * MICRO)
    throw new Refusal("budget_held", `The rest of this ${scope}'s budget is held by requests under way; try again when they are answered.`);
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
