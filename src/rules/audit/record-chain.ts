/** The chain in the store, and the note of its end beside it. */
import type { AuditEntry, AuditRecord, AuditReport } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Change, Read, Store } from "../../base/store/store.ts";
import { AnchorFile, type Anchor } from "./anchor.ts";
import { BEGINNING, hashOf } from "./chain.ts";
import { brokenEntry } from "./own-entries.ts";
import { missedBy, verifyTrail } from "./verification.ts";

/** With the time it came. */
export type DatedEntry = AuditEntry & { readonly at: string };
/** Makes the chain longer, in the transaction it is given. */
export type AppendRecords = (entries: readonly DatedEntry[]) => Promise<AuditRecord[]>;
type ChainEnd = Anchor & { readonly at: string };

const START: ChainEnd = { sequence: 0, hash: BEGINNING, at: "" };

export interface RecordChainOptions {
  readonly reach: (point: string) => void;
  readonly now: () => Date;
  /** Hears that the trail is not what it was. */
  readonly onBroken: (error: VivError) => void;
}

export class RecordChain {
  readonly #store: Store;
  readonly #anchor: AnchorFile;
  readonly #options: RecordChainOptions;
  /**
   * The end of the chain, also of a transaction under way. Only this server writes: if records are removed from the end, the next record
   * finds that they are missing.
   */
  #tip: ChainEnd | undefined;
  #committed = START;
  #noted = 0;

  constructor(store: Store, anchor: string, options: RecordChainOptions) {
    this.#store = store;
    this.#anchor = new AnchorFile(anchor);
    this.#options = options;
  }

  /** A transaction that may make the chain longer. They are one after the other, so that each finds the end of the last. */
  async change<Result>(work: (change: Change, extend: AppendRecords) => Promise<Result>): Promise<Result> {
    const { reach } = this.#options;
    let made: ChainEnd | undefined;
    try {
      reach("audit.begin");
      const result = await this.#store.change((change) =>
        work(change, async (entries) => {
          const records = await this.#extend(change, entries);
          made = this.#tip;
          return records;
        }),
      );
      reach("audit.committed");
      if (made !== undefined && made.sequence > this.#committed.sequence) this.#committed = made;
      return result;
    } catch (error) {
      // Whether it was committed is read anew, and the note beside the store says whether that can be.
      if (made !== undefined) this.#tip = undefined;
      throw error;
    }
  }

  async #extend(change: Change, entries: readonly DatedEntry[]): Promise<AuditRecord[]> {
    const own: DatedEntry[] = [];
    let tip = this.#tip ?? (await this.#resume(change, own));
    const follow = (entry: DatedEntry): AuditRecord => (tip = following(entry, tip));
    const before = own.map(follow);
    const records = entries.map(follow);
    await change.audit.append([...before, ...records]);
    this.#tip = tip;
    this.#options.reach("audit.append");
    return records;
  }

  /** The end of the chain as the store has it. If that is not what was noted, the next record says so, for good. */
  async #resume(store: Read, own: DatedEntry[]): Promise<ChainEnd> {
    const newest = await store.audit.newest();
    const noted = this.#anchor.read();
    const tip = newest ?? START;
    if (newest === undefined && noted === undefined) {
      // There is a note before there is a record: one that is missing later was taken away.
      this.#anchor.write(tip);
      return tip;
    }
    const problem = await missedBy(store, noted, tip.sequence);
    if (problem !== undefined) {
      own.push({ ...brokenEntry(problem, noted), at: this.#options.now().toISOString() });
      this.#options.onBroken(new VivError("audit_unavailable", `The audit trail is not whole. ${problem}`));
    }
    return tip;
  }

  /** First the records are on the disk, then they are noted: the note is never ahead, whatever breaks off. */
  async settle(): Promise<void> {
    const tip = this.#committed;
    await this.#store.sync();
    this.#options.reach("audit.synced");
    if (tip.sequence > this.#noted) this.#anchor.write(tip);
    this.#noted = Math.max(this.#noted, tip.sequence);
    this.#options.reach("audit.anchor");
  }

  /** Reads the whole chain. `noted` is a record that a person noted elsewhere. */
  async verify(noted?: Anchor): Promise<AuditReport> {
    const known = noted === undefined ? [this.#committed] : [this.#committed, noted];
    return verifyTrail(this.#store, this.#anchor.read(), known);
  }

  close(): void {
    this.#anchor.close();
  }
}

function following(entry: DatedEntry, last: ChainEnd): AuditRecord {
  const rest = { ...entry, sequence: last.sequence + 1, clockBack: entry.at < last.at, previous: last.hash };
  return { ...rest, hash: hashOf(rest) };
}
