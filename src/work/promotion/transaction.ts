/**
 * Applies changes to a project's real folder, all or none. New contents are staged on the project's own file system, a
 * journal says what will be done, every file is exchanged into place by an atomic rename and what it displaced is compared.
 * Whatever is found that was not expected brings everything back; a crash at any point ends in before or after.
 */
import { constants } from "node:os";
import type { CellHost } from "../../base/host/cell-host.ts";
import { CellError } from "../../base/host/helper.ts";
import { type FieldList, type Fields, splitParts } from "../../base/host/frames.ts";
import { KeyedLocks } from "../../base/host/locks.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { type ErrorCode, VivError } from "../../base/schema/errors.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { otherNames } from "./hard-links.ts";
import { keptSentence } from "./kept-edits.ts";
import { encodeList, NOTHING_BEFORE, type EarlierFiles } from "./transaction-entries.ts";
import { type StartedTransaction, TransactionJournal } from "./transaction-journal.ts";

export type { EarlierFiles } from "./transaction-entries.ts";

export interface ApplyRequest {
  readonly id: string;
  /** Absolute path of the real folder. */
  readonly project: string;
  /** `old` is what the folder must hold now. */
  readonly changes: readonly MergedChange[];
  /** Folder of ours with every content of both sides. It must stay until the transaction is finished. */
  readonly contents: string;
  /** How files coming back once were. */
  readonly restore?: EarlierFiles;
}

/** A path that is not as the change expects it, such as one the user edited meanwhile. */
export interface LateEdit {
  readonly path: Buffer;
  readonly what: string;
}

const MOST_PER_STEP = 2048;
const JOURNALLED = ["journal", "1"] as const;
const NOT_JOURNALLED = ["journal", "0"] as const;

export class Transactions {
  readonly #host: CellHost;
  readonly #journal: TransactionJournal;
  readonly #reach: (point: string) => void;
  readonly #locks = new KeyedLocks();

  constructor(host: CellHost, folder: string, reach: (point: string) => void) {
    this.#host = host;
    this.#journal = new TransactionJournal(folder);
    this.#reach = reach;
  }

  /**
   * No conflicts: applied, and durable. Otherwise nothing is, and an edit of the user is where the user made it. `heard` is told of files
   * that were edited once they were in place: these stay as they are.
   */
  async apply(request: ApplyRequest, heard: (late: LateEdit) => void = () => undefined): Promise<{ conflicts: LateEdit[] }> {
    const { id, project, contents } = request;
    return this.#locks.run(id, async () => {
      const before = request.restore ?? NOTHING_BEFORE;
      const list = encodeList(request.changes, before, await otherNames(project, before.linked));
      const begun = { project, contents };
      if ((await this.#journal.progress(id)) !== "none") throw new VivError("internal", `The transaction ${id} was begun before.`);
      await this.#journal.begin(id, begun, list);
      const conflicts = await this.#tryToApply(id, begun, list.count, heard);
      if (conflicts.length === 0) await this.#finish(id, begun);
      return { conflicts };
    });
  }

  /** Brings a transaction that was cut short to its end. `heard` is told of edits that stay although everything else is as before. */
  async recover(id: string, heard: (late: LateEdit) => void = () => undefined): Promise<"before" | "after"> {
    return this.#locks.run(id, async () => {
      const progress = await this.#journal.progress(id);
      if (progress === "finished") return "after";
      if (progress === "none") return "before";
      const begun = await this.#journal.begun(id);
      if (progress === "committed" && begun !== undefined) {
        await this.#putAway(id, begun);
        return "after";
      }
      if (begun !== undefined) for (const late of await this.#bringBack(id, begun)) heard(late);
      await this.#journal.remove(id);
      return "before";
    });
  }

  /** Transactions that were cut short. */
  async pending(): Promise<string[]> {
    const ids = await this.#journal.ids();
    const unfinished = await Promise.all(ids.map(async (id) => !this.#locks.busy(id) && (await this.#journal.progress(id)) !== "finished"));
    return ids.filter((_, index) => unfinished[index]);
  }

  /** How the files were that a finished transaction replaced or deleted. */
  async before(id: string): Promise<EarlierFiles> {
    return { attributes: await this.#journal.taken(id), linked: await this.#journal.links(id) };
  }

  /** Forgets a finished transaction; one that was cut short stays as it is. */
  async forget(id: string): Promise<void> {
    await this.#locks.run(id, () => this.#journal.remove(id));
  }

  async #tryToApply(id: string, begun: StartedTransaction, count: number, heard: (late: LateEdit) => void): Promise<LateEdit[]> {
    let conflicts: readonly LateEdit[];
    try {
      conflicts = await this.#carryOut(id, begun, count);
      if (conflicts.length === 0) {
        await this.#journal.commit(id);
        return [];
      }
    } catch (error) {
      const stay = await this.#giveUp(id, begun, error);
      stay.forEach(heard);
      const names = keptSentence(stay.map(({ path }) => decodePath(path)));
      throw asVivError(error, names === "" ? "Nothing was applied" : `${names}Nothing else was applied`);
    }
    const kept = await this.#giveUp(id, begun);
    kept.forEach(heard);
    const listed = new Set(conflicts.map(({ path }) => path.toString("latin1")));
    return [...conflicts, ...kept.filter(({ path }) => !listed.has(path.toString("latin1")))];
  }

  /** Up to the point where everything is in place, durable and verified. */
  async #carryOut(id: string, begun: StartedTransaction, count: number): Promise<LateEdit[]> {
    const staged = conflictsOf(await this.#ask("stage", id, begun));
    if (staged.length > 0) return staged;
    this.#reach("promote.staged");
    await this.#journal.seal(id);
    this.#reach("promote.journalled");
    const size = Math.max(1, Math.min(MOST_PER_STEP, Math.ceil(count / 2)));
    for (let from = 0; from < count; from += size) {
      const carried = await this.#ask("carry", id, begun, [
        ["from", String(from)],
        ["count", String(size)],
      ]);
      const conflicts = conflictsOf(carried);
      if (conflicts.length > 0) return conflicts;
      if (from === 0) this.#reach("promote.half");
    }
    this.#reach("promote.applied");
    const verified = conflictsOf(await this.#ask("verify", id, begun));
    if (verified.length === 0) this.#reach("promote.synced");
    return verified;
  }

  /** After the commit nothing can fail any more: a staging folder that can't be removed now is removed by a recovery. */
  async #finish(id: string, begun: StartedTransaction): Promise<void> {
    this.#reach("promote.committed");
    try {
      await this.#putAway(id, begun);
    } catch (error) {
      if (error instanceof CellError || (error instanceof VivError && error.code === "cell_failed")) return;
      throw error;
    }
    this.#reach("promote.cleaned");
  }

  /** Nothing is left in the project then. What was replaced is removed while no caller waits, or by the next server. */
  async #putAway(id: string, begun: StartedTransaction): Promise<void> {
    const aside = (await this.#ask("clean", id, begun, [JOURNALLED, ["aside", "1"]])).flag("aside");
    await this.#journal.finish(id);
    if (aside) this.#removeAside(id);
  }

  #removeAside(id: string): void {
    this.#host.request("remove", [["path", this.#journal.aside(id)]]).catch(() => undefined);
  }

  /** Removes what an earlier server had put aside and had no time to remove. */
  async clear(): Promise<void> {
    for (const id of await this.#journal.ids()) if (await this.#journal.hasAside(id)) this.#removeAside(id);
  }

  async #giveUp(id: string, begun: StartedTransaction, reason?: unknown): Promise<LateEdit[]> {
    try {
      const kept = await this.#bringBack(id, begun);
      await this.#journal.remove(id);
      return kept;
    } catch (error) {
      const cause = reason ?? error;
      const remedy = "Make the project's folder writable again; the next command brings everything back.";
      const { code, message } = asVivError(error, "What was begun can't be brought back yet");
      throw new VivError(code, message, { cause, remedy });
    }
  }

  async #bringBack(id: string, begun: StartedTransaction): Promise<LateEdit[]> {
    const journalled = (await this.#journal.progress(id)) === "journalled";
    const kept = journalled ? editsIn(await this.#ask("back", id, begun), "kept") : [];
    await this.#clean(id, begun, journalled);
    return kept;
  }

  async #clean(id: string, begun: StartedTransaction, journalled: boolean): Promise<void> {
    await this.#ask("clean", id, begun, [journalled ? JOURNALLED : NOT_JOURNALLED]);
  }

  async #ask(step: string, id: string, { project, contents }: StartedTransaction, more: FieldList = []): Promise<Fields> {
    const fields: FieldList = [
      ["name", id],
      ["project", project],
      ["state", this.#journal.place(id)],
      ["contents", contents],
    ];
    return this.#host.request(`apply.${step}`, [...fields, ...more]);
  }
}

function conflictsOf(reply: Fields): LateEdit[] {
  return editsIn(reply, "conflict");
}

function editsIn(reply: Fields, key: string): LateEdit[] {
  return reply.rawAll(key).map((value) => {
    const [what, path] = splitParts(value, 2);
    return { path: path ?? Buffer.alloc(0), what: what?.toString() ?? "" };
  });
}

const { EACCES, EDQUOT, ENOSPC, EPERM, EROFS } = constants.errno;
const CODES: Readonly<Record<number, ErrorCode>> = {
  [ENOSPC]: "disk_full",
  [EDQUOT]: "disk_full",
  [EACCES]: "denied",
  [EPERM]: "denied",
  [EROFS]: "denied",
};

function asVivError(error: unknown, outcome: string): VivError {
  if (error instanceof VivError && error.code === "cell_failed")
    return new VivError(error.code, `${outcome}: ${error.message}`, { cause: error, remedy: error.remedy });
  if (!(error instanceof CellError)) return VivError.from(error);
  const code = CODES[error.errno] ?? "cell_failed";
  const remedy = code === "denied" ? { remedy: "Make the project's folder and files writable for you, then promote again." } : {};
  return new VivError(code, `${outcome}: ${error.message}.`, { cause: error, ...remedy });
}
