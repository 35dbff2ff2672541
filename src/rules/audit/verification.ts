/** Whether the trail is what it was: each record follows from the one before, and those that were noted are still there. */
import { setImmediate as immediate } from "node:timers/promises";
import type { AuditReport } from "../../base/schema/audit.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Read } from "../../base/store/store.ts";
import type { Anchor } from "./anchor.ts";
import { BEGINNING, firstBad } from "./chain.ts";
import { brokenBefore } from "./own-entries.ts";

type Problem = NonNullable<ReturnType<typeof firstBad>>;

const NO_NOTE = "The note of the newest record beside the database is gone: records may have been cut off the end.";

export async function verifyTrail(store: Read, beside: Anchor | undefined, others: readonly Anchor[]): Promise<AuditReport> {
  const noted = [...(beside === undefined ? [] : [beside]), ...others];
  let [records, newest] = [0, BEGINNING];
  const bad = ({ sequence, problem }: Problem): AuditReport => ({ whole: false, records, newest, problem, firstBad: sequence });
  for (;;) {
    const page = await store.audit.list({ after: records, limit: LIMITS.auditPage });
    const found = firstBad(page, records + 1, newest) ?? otherThanNoted(page, noted) ?? knownBroken(page);
    if (found !== undefined) return bad(found);
    records += page.length;
    newest = page.at(-1)?.hash ?? newest;
    if (page.length < LIMITS.auditPage) break;
    // Other work of the server goes on while a long chain is read.
    await immediate();
  }
  const last = Math.max(0, ...noted.map(({ sequence }) => sequence));
  if (last > records) return bad({ sequence: records + 1, problem: cutOff(records, last) });
  if (beside === undefined && records > 0) return bad({ sequence: records + 1, problem: NO_NOTE });
  return { whole: true, records, newest, problem: null, firstBad: null };
}

/** What the note beside the database misses in it, without reading all of it. */
export async function missedBy(store: Read, noted: Anchor | undefined, newest: number): Promise<string | undefined> {
  if (noted === undefined) return NO_NOTE;
  if (noted.sequence > newest) return cutOff(newest, noted.sequence);
  if (noted.sequence === 0) return undefined;
  const page = await store.audit.list({ after: noted.sequence - 1, limit: 1 });
  return (
    otherThanNoted(page, [noted])?.problem ?? (page[0]?.sequence === noted.sequence ? undefined : `Record ${noted.sequence} is missing.`)
  );
}

function otherThanNoted(page: readonly Anchor[], noted: readonly Anchor[]): Problem | undefined {
  for (const { sequence, hash } of page) {
    if (noted.some((note) => note.sequence === sequence && note.hash !== hash))
      return { sequence, problem: `Record ${sequence} is not the one that was noted.` };
  }
  return undefined;
}

function knownBroken(page: Parameters<typeof firstBad>[0]): Problem | undefined {
  for (const record of page) {
    const problem = brokenBefore(record);
    if (problem !== undefined) return { sequence: record.sequence, problem };
  }
  return undefined;
}

function cutOff(newest: number, noted: number): string {
  return noted === newest + 1 ? `Record ${noted} was cut off.` : `Records ${newest + 1} to ${noted} were cut off.`;
}
