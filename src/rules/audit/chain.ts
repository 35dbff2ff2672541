/** The chain of records: hashes over a text that is the same for the same record, whatever program writes it. */
import { hash as digest } from "node:crypto";
import type { AuditRecord } from "../../base/schema/audit.ts";

/** What stands before the first record. */
export const BEGINNING = "0".repeat(64);

export function hashOf(record: Omit<AuditRecord, "hash">): string {
  return digest("sha256", canonical(record));
}

/** JSON with its fields in order. Written for speed: every record goes through it. */
export function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const given = value as Readonly<Record<string, unknown>>;
  let text = "";
  for (const name of Object.keys(given).toSorted()) {
    const inner = given[name];
    if (inner !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${canonical(inner)}`;
  }
  return `{${text}}`;
}

/** The first place where records don't follow from each other; `before` is the hash that the first must name. */
export function firstBad(
  records: readonly AuditRecord[],
  sequence: number,
  before: string,
): { sequence: number; problem: string } | undefined {
  let [expected, previous] = [sequence, before];
  for (const record of records) {
    const { hash, ...rest } = record;
    if (record.sequence !== expected) return { sequence: expected, problem: `Record ${expected} is missing.` };
    if (record.previous !== previous) return { sequence: expected, problem: `Record ${expected} does not follow from the one before.` };
    if (hashOf(rest) !== hash) return { sequence: expected, problem: `Record ${expected} was changed.` };
    previous = hash;
    expected += 1;
  }
  return undefined;
}
