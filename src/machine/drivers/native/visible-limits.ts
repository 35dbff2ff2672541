/** What programs inside are told of the limits, as native/PROTOCOL.md (launch and limits) understands it. */
import type { Limits } from "../../../base/schema/sandbox.ts";

/** Processors are counted whole. Where nothing holds their limit, those of the machine are what there is. */
export function visibleLimits(limits: Limits, cpusHeld: boolean): (readonly [key: string, value: string])[] {
  const memory = ["memory", String(limits.memoryBytes)] as const;
  return cpusHeld ? [memory, ["cpus", String(Math.ceil(limits.cpus))]] : [memory];
}
