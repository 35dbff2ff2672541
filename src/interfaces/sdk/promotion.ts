/** A change on its way into reality. */
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import { untilOver } from "./following.ts";
import type { PromoteInput } from "./types/promotions-operations.ts";
import type { PromotionInfo } from "./types/promotions.ts";

export interface PromoteOptions extends Omit<PromoteInput, "sandbox" | "experiment">, CallOptions {}

const UNDER_WAY = new Set(["planning", "waiting", "applying"]);

/** A promotion, or the undo of one. Whether it was applied is a value: look at `state`. */
export class Promotion {
  /** As it was when it was last looked at. */
  info: PromotionInfo;
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection, info: PromotionInfo) {
    this.#connection = connection;
    this.info = info;
  }

  get id(): string {
    return this.info.id;
  }

  /** applied, or waiting for a person, or failed with a `reason`. */
  get state(): PromotionInfo["state"] {
    return this.info.state;
  }

  /** Why it failed or waits, one sentence. */
  get reason(): string | null {
    return this.info.reason;
  }

  /** Waits until it is no longer under way, such as for a person's approval. */
  async settled(options: CallOptions = {}): Promise<this> {
    refuseUnknown("promotion.settled", options, ["signal"]);
    this.info = await untilOver(this.#connection, {
      look: () => this.#connection.call("inspectPromotion", { promotion: this.id }),
      concerns: ({ type, data }) => type.startsWith("promotion.") && Object.values(data).includes(this.id),
      isOver: ({ state }) => !UNDER_WAY.has(state),
      signal: options.signal,
    });
    return this;
  }

  /** Takes it back. */
  async undo(options: CallOptions = {}): Promise<Promotion> {
    const { signal, ...rest } = options;
    return new Promotion(this.#connection, await this.#connection.call("undoPromotion", { promotion: this.id, ...rest }, signal));
  }

  /** Takes back one that waits; nothing is applied. */
  async discard(options: CallOptions = {}): Promise<this> {
    const { signal, ...rest } = options;
    this.info = await this.#connection.call("discardPromotion", { promotion: this.id, ...rest }, signal);
    return this;
  }
}

/** Brings a change into reality. */
export async function promote(
  connection: Connection,
  source: { readonly sandbox: string } | { readonly experiment: string },
  options: PromoteOptions,
): Promise<Promotion> {
  const { signal, ...rest } = options;
  const { env } = connection.platform.caller;
  return new Promotion(connection, await connection.call("promote", { ...source, ...(env === undefined ? {} : { env }), ...rest }, signal));
}
