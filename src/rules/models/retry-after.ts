/** When a model API may be asked again, as its refusal says: by a header, or, with Google, by its body. */
import type { IncomingHttpHeaders } from "node:http";

/** Statuses of providers that want to be asked later: one asked too much, or all did. */
export const LIMITED_STATUSES: ReadonlySet<number> = new Set([429, 529]);

/** What a provider answered to a request that costs something. */
export interface ModelAnswer {
  readonly status: number;
  /** Of a refusal for a while: how long that is; null where the provider does not say. */
  readonly waitMs: number | null;
}

/** A provider that names a longer wait is not believed: its answer says nothing then. */
const LONGEST_MS = 7 * 24 * 3600 * 1000;
const GOOGLE_DELAY = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/;

export function modelAnswer(status: number, headers: IncomingHttpHeaders, text: string, now: number): ModelAnswer {
  if (!LIMITED_STATUSES.has(status)) return { status, waitMs: null };
  const named = [
    seconds(headers["retry-after-ms"], 1),
    seconds(headers["retry-after"], 1000),
    dateOf(headers["retry-after"], now),
    seconds(GOOGLE_DELAY.exec(text)?.[1], 1000),
  ];
  return { status, waitMs: named.find((ms) => ms !== undefined && ms >= 0 && ms <= LONGEST_MS) ?? null };
}

function seconds(value: string | string[] | undefined, unitMs: number): number | undefined {
  return typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Math.round(Number(value) * unitMs) : undefined;
}

function dateOf(value: string | undefined, now: number): number | undefined {
  const at = value === undefined ? Number.NaN : Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
