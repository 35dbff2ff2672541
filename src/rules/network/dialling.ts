/** Dialling addresses that were checked. All that sends no packet is done before: the permission may still be on its way to the disk. */
import { LIMITS } from "../../base/schema/limits.ts";
import { OutsideConnection } from "./outside.ts";

/** A connection that is made ready, and not dialled yet. */
export class Dialling {
  readonly #outside = new OutsideConnection();
  readonly #done: Promise<OutsideConnection | undefined>;
  #timer: NodeJS.Timeout | undefined;

  constructor(signal: AbortSignal | undefined) {
    const { socket } = this.#outside;
    this.#done = new Promise((resolve) => {
      // When the client hangs up, the attempt to connect ends.
      signal?.addEventListener("abort", this.#stop);
      const done = (result: OutsideConnection | undefined): void => {
        clearTimeout(this.#timer);
        signal?.removeEventListener("abort", this.#stop);
        resolve(result);
      };
      socket.once("connect", () => done(this.#outside));
      // After a connection it says nothing new.
      socket.once("close", () => done(undefined));
    });
  }

  readonly #stop = (): void => void this.#outside.socket.destroy();

  /** Sends the first packet; undefined if there is no answer in time. */
  dial(address: string, port: number, withinMs: number): Promise<OutsideConnection | undefined> {
    this.#outside.dial(address, port);
    this.#timer = setTimeout(this.#stop, withinMs);
    return this.#done;
  }
}

/** One after the other, each for a share of the time; the first with what was made ready. */
export async function dialFirst(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal | undefined,
  ready: Dialling | undefined,
): Promise<OutsideConnection | undefined> {
  const tried = addresses.slice(0, LIMITS.egressAddresses);
  const each = LIMITS.egressDialMs / tried.length;
  for (const [index, address] of tried.entries()) {
    if (signal?.aborted === true) return undefined;
    const made = (index === 0 ? ready : undefined) ?? new Dialling(signal);
    const outside = await made.dial(address, port, each);
    if (outside !== undefined) return outside;
  }
  return undefined;
}
