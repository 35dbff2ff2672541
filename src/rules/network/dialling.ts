/** Dialling addresses that were checked. */
import { LIMITS } from "../../base/schema/limits.ts";
import { OutsideConnection } from "./outside.ts";

/** Undefined if there is no answer in time. When the client hangs up, the attempt to connect ends. */
function dial(address: string, port: number, withinMs: number, signal: AbortSignal | undefined): Promise<OutsideConnection | undefined> {
  const outside = new OutsideConnection();
  const { socket } = outside;
  return new Promise((resolve) => {
    const stop = (): void => void socket.destroy();
    const timer = setTimeout(stop, withinMs);
    const done = (result: OutsideConnection | undefined): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(result);
    };
    signal?.addEventListener("abort", stop);
    socket.once("connect", () => done(outside));
    // After a connection it says nothing new.
    socket.once("close", () => done(undefined));
    outside.dial(address, port);
  });
}

export interface Attempt {
  readonly address: string;
  readonly withinMs: number;
}

/** Those that are tried, one after the other, and how long each. */
export function attempts(addresses: readonly string[]): Attempt[] {
  const tried = addresses.slice(0, LIMITS.egressAddresses);
  return tried.map((address) => ({ address, withinMs: LIMITS.egressDialMs / tried.length }));
}

export async function dialFirst(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal | undefined,
): Promise<OutsideConnection | undefined> {
  for (const { address, withinMs } of attempts(addresses)) {
    if (signal?.aborted === true) return undefined;
    const outside = await dial(address, port, withinMs, signal);
    if (outside !== undefined) return outside;
  }
  return undefined;
}
