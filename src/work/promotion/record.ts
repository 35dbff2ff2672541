/** What a promotion writes and what it replaces, kept on disk for its stages and for an undo. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import type { PreparedPlan } from "./plan.ts";

interface RecordedChange {
  readonly path: string;
  readonly old: MergedChange["old"];
  readonly new: MergedChange["new"];
}

export interface PromotionRecord {
  readonly changes: readonly MergedChange[];
  readonly own: readonly MergedChange[];
  /** Folder with the contents of both sides. */
  readonly contents: string;
}

export class Records {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** An empty folder for a promotion; what an earlier plan left in it is gone. */
  async fresh(id: string): Promise<string> {
    const folder = join(this.#folder, id);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  async save(id: string, { changes, own }: Pick<PreparedPlan, "changes" | "own">): Promise<void> {
    const file = join(this.#folder, id, "changes.json");
    const keep = (change: MergedChange): RecordedChange => ({ path: change.path.toString("base64"), old: change.old, new: change.new });
    await writeFile(`${file}.new`, JSON.stringify({ changes: changes.map(keep), own: own.map(keep) }), { mode: 0o600 });
    await rename(`${file}.new`, file);
  }

  /** Undefined where nothing is kept, or no longer. */
  async load(id: string): Promise<PromotionRecord | undefined> {
    try {
      const text = await readFile(join(this.#folder, id, "changes.json"), "utf8");
      const { changes, own } = JSON.parse(text) as { changes: RecordedChange[]; own: RecordedChange[] };
      const back = (kept: RecordedChange): MergedChange => ({ ...kept, path: Buffer.from(kept.path, "base64") });
      return { changes: changes.map(back), own: own.map(back), contents: join(this.#folder, id, "contents") };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    await rm(join(this.#folder, id), { recursive: true, force: true });
  }
}
