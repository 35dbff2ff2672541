/** Requests, put together from the records of their decision and of their end. */
import type { AuditRecord } from "../../../src/base/schema/audit.ts";

interface Ended {
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

export interface RequestRow {
  readonly record: AuditRecord;
  /** Protocol, or method and path where the proxy can read them. */
  readonly what: string;
  /** Missing while it goes on, and where it was denied. */
  readonly ended: Ended | undefined;
}

function detailsOf({ arguments: given }: AuditRecord): Readonly<Record<string, unknown>> {
  return typeof given === "object" && given !== null && !Array.isArray(given) ? given : {};
}

function wordsOf(record: AuditRecord): string {
  const { protocol, method, path } = detailsOf(record);
  return [method ?? protocol, path].filter((one) => typeof one === "string").join(" ");
}

/** What the records of one request have in common. */
function keyOf(record: AuditRecord): string {
  return JSON.stringify([record.target, wordsOf(record), detailsOf(record)["address"]]);
}

/** The newest first. Of several that are alike, the one that began first ended first. */
export function requestsOf(records: readonly AuditRecord[]): RequestRow[] {
  const rows = new Map<number, RequestRow>();
  const open = new Map<string, number[]>();
  for (const record of records) {
    const key = keyOf(record);
    if (record.action === "network.request") {
      rows.set(record.sequence, { record, what: wordsOf(record), ended: undefined });
      if (record.label !== "DENIED") open.set(key, [...(open.get(key) ?? []), record.sequence]);
    } else if (record.action === "network.ended") {
      const [first, ...rest] = open.get(key) ?? [];
      open.set(key, rest);
      const row = first === undefined ? undefined : rows.get(first);
      if (row === undefined) continue;
      const { sentBytes, receivedBytes } = detailsOf(record);
      rows.set(row.record.sequence, { ...row, ended: { sentBytes: Number(sentBytes ?? 0), receivedBytes: Number(receivedBytes ?? 0) } });
    }
  }
  return [...rows.values()].toReversed();
}
