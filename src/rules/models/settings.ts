/** What the user's config says about models. It is read again when its file changes, so that a new login counts from the next request on. */
import type { UserConfig } from "../../base/schema/config.ts";
import type { BudgetsConfig, PricesConfig } from "../../base/schema/model.ts";
import { providersOf, type KnownProvider } from "./providers.ts";

export type ModelConfig = Pick<UserConfig, "models" | "prices" | "budgets">;

export class ModelSettings {
  #config: ModelConfig;
  #providers: ReadonlyMap<string, KnownProvider>;
  readonly #changed: () => ModelConfig | undefined;
  readonly #trouble: (error: unknown) => void;

  /** `changed` gives the config if it is another one than at the last call, and may throw: then what was there before stays. */
  constructor(
    config: ModelConfig,
    changed: () => ModelConfig | undefined = () => undefined,
    trouble: (error: unknown) => void = () => undefined,
  ) {
    this.#config = config;
    this.#providers = providersOf(config.models);
    this.#changed = changed;
    this.#trouble = trouble;
  }

  get providers(): ReadonlyMap<string, KnownProvider> {
    this.#look();
    return this.#providers;
  }

  get prices(): PricesConfig {
    this.#look();
    return this.#config.prices;
  }

  get budgets(): BudgetsConfig {
    this.#look();
    return this.#config.budgets;
  }

  /** Whether a secret is a provider's login: its use is counted here, and no other part of the server may send it. */
  isLogin(secret: string): boolean {
    return [...this.providers.values()].some((provider) => provider.secret === secret);
  }

  #look(): void {
    try {
      const config = this.#changed();
      if (config === undefined) return;
      this.#providers = providersOf(config.models);
      this.#config = config;
    } catch (error) {
      this.#trouble(error);
    }
  }
}
