/**
 * The audit trail. Records wait for each other and are written together, so that thousands a second are durable; whoever must not
 * act without a record waits for it, whoever only reports does not.
 */
import type { AuditEntry, AuditRecord, AuditReport } from "../schema/audit.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import { redact, redactValue } from "../schema/secret-patterns.ts";
import type { Change, Store } from "../store/store.ts";
import { AnchorFile } from "./anchor.ts";
import { BEGINNING, firstBad, hashOf } from "./chain.ts";

interface Waiting {
  readonly entry: AuditEntry;
  readonly done: PromiseWithResolvers<AuditRecord>;
}

/** What a change of rows comes to, and the record of it; none where nothing was decided. */
export interface Recorded<Result> {
  readonly entry?: AuditEntry | undefined;
  readonly result: Result;
}

const PAGE = 1000;

export class Audit {
  readonly #store: Store;
  readonly #anchor: AnchorFile;
  readonly #onLost: (error: unknown, records: number) => void;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  /** `onLost` hears of reports that could not be written. */
  constructor(store: Store, anchor: string, onLost: (error: unknown, records: number) => void) {
    this.#store = store;
    this.#anchor = new AnchorFile(anchor);
    this.#onLost = onLost;
  }

  /** Resolves once the record is durable. Whoever can't be recorded must not act: the error is theirs. */
  async record(entry: AuditEntry): Promise<AuditRecord> {
    if (this.#waiting.length >= LIMITS.waitingAuditRecords) throw new VivError("audit_unavailable", "Too many records wait to be written.");
    const done = Promise.withResolvers<AuditRecord>();
    this.#waiting.push({ entry: cleaned(entry), done });
    this.#writing ??= this.#write();
    return done.promise;
  }

  /** A decision and its record in one transaction: neither is there without the other. */
  async recordWith<Result>(work: (change: Change) => Promise<Recorded<Result>>): Promise<Result> {
    const { made, result } = await this.#store.change(async (change) => {
      const { entry, result: kept } = await work(change);
      if (entry === undefined) return { result: kept };
      const record = follow(cleaned(entry), await change.newestAudit());
      await change.appendAudit([record]);
      return { made: record, result: kept };
    });
    if (made !== undefined) await this.#anchor.write(made);
    return result;
  }

  /** For what is only told: nobody waits, and nothing is refused for it. */
  note(entry: AuditEntry): void {
    this.record(entry).catch((error: unknown) => this.#onLost(error, 1));
  }

  async #write(): Promise<void> {
    // Whatever comes in this moment goes along.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, LIMITS.auditBatch);
      try {
        const records = await this.#append(batch.map(({ entry }) => entry));
        for (const [index, { done }] of batch.entries()) {
          const record = records[index];
          if (record === undefined) done.reject(new VivError("audit_unavailable", "The record was not written."));
          else done.resolve(record);
        }
      } catch (error) {
        const reason = new VivError("audit_unavailable", "The audit trail can't be written.", { cause: error });
        for (const { done } of batch) done.reject(reason);
      }
    }
    this.#writing = undefined;
  }

  async #append(entries: readonly AuditEntry[]): Promise<AuditRecord[]> {
    const records = await this.#store.change(async (change) => {
      let last = await change.newestAudit();
      const made = entries.map((entry) => (last = follow(entry, last)));
      await change.appendAudit(made);
      return made;
    });
    const newest = records.at(-1);
    if (newest !== undefined) await this.#anchor.write(newest);
    return records;
  }

  async list(filter: { sandbox?: string | undefined; after: number; limit: number }): Promise<AuditRecord[]> {
    return this.#store.audit(filter);
  }

  /** Reads all of it, page by page. */
  async verify(): Promise<AuditReport> {
    let [records, newest] = [0, BEGINNING];
    const anchor = await this.#anchor.read();
    const bad = (sequence: number, problem: string): AuditReport => ({ whole: false, records, newest, problem, firstBad: sequence });
    for (;;) {
      const page = await this.#store.audit({ after: records, limit: PAGE });
      const found = firstBad(page, records + 1, newest);
      if (found !== undefined) return bad(found.sequence, found.problem);
      for (const record of page) {
        if (record.sequence === anchor?.sequence && record.hash !== anchor.hash)
          return bad(record.sequence, `Record ${record.sequence} is not the one that was noted beside the database.`);
      }
      records += page.length;
      newest = page.at(-1)?.hash ?? newest;
      if (page.length < PAGE) break;
    }
    if (anchor !== undefined && anchor.sequence > records)
      return bad(records + 1, `Records ${records + 1} to ${anchor.sequence} were cut off.`);
    return { whole: true, records, newest, problem: null, firstBad: null };
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await this.#writing;
  }
}

function cleaned(entry: AuditEntry): AuditEntry {
  return {
    ...entry,
    target: redact(entry.target).slice(0, 4096),
    arguments: bounded(redactValue(entry.arguments) as AuditEntry["arguments"]),
    reason: entry.reason === null ? null : redact(entry.reason).slice(0, 4096),
  };
}

/** Arguments are details: what is too long is told by its beginning. */
function bounded(value: AuditEntry["arguments"]): AuditEntry["arguments"] {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= LIMITS.auditArgumentCharacters ? value : { cut: text.slice(0, LIMITS.auditArgumentCharacters) };
}

function follow(entry: AuditEntry, last: AuditRecord | undefined): AuditRecord {
  const at = new Date().toISOString();
  const rest = {
    ...entry,
    sequence: (last?.sequence ?? 0) + 1,
    at,
    clockBack: last !== undefined && at < last.at,
    previous: last?.hash ?? BEGINNING,
  };
  return { ...rest, hash: hashOf(rest) };
}
