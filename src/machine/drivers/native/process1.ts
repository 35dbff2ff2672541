/** What the native driver writes into a sandbox's row to find its process 1 again. */
import type { Launched } from "../../../base/store/rows.ts";

export interface Process1 {
  /** As the host numbers it. */
  readonly pid: number;
  /** When it started, in the kernel's own count: tells it from a later process with the same number. */
  readonly start: string;
  /** Id of the boot it was launched in. */
  readonly boot: string;
  /** Id of the state folder it belongs to; absent where it was launched before folders had one. */
  readonly owner?: string;
}

/** Undefined for a row that another driver or a damaged disk wrote. */
export function readProcess1(launched: Launched): Process1 | undefined {
  const { pid, start, boot, owner }: Partial<Record<keyof Process1, unknown>> = launched;
  if (typeof pid !== "number" || typeof start !== "string" || typeof boot !== "string") return undefined;
  return { pid, start, boot, ...(typeof owner === "string" ? { owner } : {}) };
}
