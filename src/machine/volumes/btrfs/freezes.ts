/**
 * Bases that are frozen behind the answer to a create. Their sandbox was launched ahead from the base before, and its files were brought to
 * what the tip is now; whatever asks for such a base waits until it is there.
 *
 * Notes say what is under way. They are links, because a link is made at once, with what it says:
 *   tips/<project>    from before the first change of the tip until it is frozen
 *   bases/<base>      from before its sandbox has a row until base and sandbox are on the disk
 *   syncs/<project>-  the markers of syncs
 * After a kill the next server goes on from there: what the kernel took is not lost. After a failure of the machine, and where a stopped pool
 * was opened again, files that were changed in place may have new times and old content. Then the tip goes, and so does the sandbox.
 */
import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { namesIn } from "../../../base/host/names-in.ts";
import { checkedId } from "../names.ts";
import type { VolumeFolders } from "../volume-folders.ts";

/** Gives the create that is under way, and its caller, the machine first. Mostly the next sandbox made ahead asks for the base sooner. */
const QUIET_MS = 20;

interface Pending {
  readonly project: string;
  starts: NodeJS.Timeout | undefined;
  running: Promise<void> | undefined;
}

/** What the storage does for it. */
interface Work {
  readonly freeze: (project: string, base: string) => Promise<void>;
  /** Writes everything back. */
  readonly sync: () => Promise<void>;
}

export class Freezes {
  readonly #folder: string;
  readonly #folders: VolumeFolders;
  readonly #work: Work;
  readonly #boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  /** By base. */
  readonly #pending = new Map<string, Pending>();
  readonly #syncs = new Set<Promise<void>>();
  readonly #lost = new Set<string>();

  constructor(folders: VolumeFolders, work: Work) {
    this.#folder = join(folders.folder, "freezing");
    this.#folders = folders;
    this.#work = work;
  }

  /** Goes on with what an earlier server left. `isWhole`: all that the kernel took since then is still there. */
  async open(isWhole: boolean): Promise<void> {
    for (const kind of ["tips", "bases", "syncs"]) mkdirSync(join(this.#folder, kind), { recursive: true, mode: 0o700 });
    this.#pending.clear();
    for (const base of namesIn(join(this.#folder, "bases"))) await this.#resume(base, isWhole);
    for (const project of namesIn(join(this.#folder, "tips"))) {
      if (isWhole && readlinkSync(this.#tip(project)) === this.#boot) continue;
      await this.discard(project);
      this.frozen(project);
    }
  }

  async #resume(base: string, isWhole: boolean): Promise<void> {
    const [boot, project = "", volume = ""] = readlinkSync(this.#base(base)).split(" ");
    if (!isWhole || boot !== this.#boot) {
      this.#lost.add(volume);
      rmSync(this.#base(base));
      return;
    }
    this.#folders.add(base);
    if (this.#folders.has("base", base)) {
      this.#syncLater(base);
      return;
    }
    this.#pending.set(base, { project, starts: undefined, running: undefined });
    // A disk that is full now may have room when the base is asked for.
    await this.of(base)?.catch(() => undefined);
  }

  /** Prefix of the markers of a tip's syncs. */
  markers(project: string): string {
    return join(this.#folder, "syncs", `${checkedId(project)}-`);
  }

  /** Throws a tip away, with what its syncs left. */
  async discard(project: string): Promise<void> {
    await this.#folders.remove("tip", project);
    const markers = this.markers(project);
    for (const name of namesIn(join(this.#folder, "syncs"))) {
      const marker = join(this.#folder, "syncs", name);
      if (marker.startsWith(markers)) rmSync(marker);
    }
  }

  /** Before the tip of a project is changed. */
  changing(project: string): void {
    try {
      symlinkSync(this.#boot, this.#tip(project));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }

  frozen(project: string): void {
    rmSync(this.#tip(project), { force: true });
  }

  /** Freezes the tip of a project as it is now in a moment, or as soon as the base is asked for. */
  later(project: string, base: string, volume: string): void {
    symlinkSync(`${this.#boot} ${checkedId(project)} ${checkedId(volume)}`, this.#base(base));
    this.#folders.add(base);
    const starts = setTimeout(() => void this.of(base)?.catch(() => undefined), QUIET_MS);
    this.#pending.set(base, { project, starts, running: undefined });
  }

  /** Resolves when the base is there; undefined where there is nothing to wait for. One that failed is tried again. */
  of(base: string): Promise<void> | undefined {
    const pending = this.#pending.get(base);
    if (pending === undefined) return undefined;
    clearTimeout(pending.starts);
    return (pending.running ??= this.#run(base, pending).finally(() => (pending.running = undefined)));
  }

  /** The same for the base that the tip of a project is to be frozen into. */
  ofProject(project: string): Promise<void> | undefined {
    const [base] = [...this.#pending].find(([, pending]) => pending.project === project) ?? [];
    return base === undefined ? undefined : this.of(base);
  }

  async #run(base: string, { project }: Pending): Promise<void> {
    try {
      await this.#work.freeze(project, base);
    } catch (error) {
      // The helper of a server that was killed may have done it meanwhile.
      if (!this.#folders.has("base", base)) throw error;
      this.frozen(project);
    }
    this.#pending.delete(base);
    this.#syncLater(base);
  }

  /** The base is on the disk, and what was brought into its sandbox is only in memory still. */
  #syncLater(base: string): void {
    const work: Promise<void> = this.#work
      .sync()
      .then(() => rmSync(this.#base(base), { force: true }))
      // The note stays, and the next server ends it.
      .catch(() => undefined)
      .finally(() => this.#syncs.delete(work));
    this.#syncs.add(work);
  }

  /** The base is not wanted any more, and neither is the sandbox that it was for. */
  async drop(base: string): Promise<void> {
    const pending = this.#pending.get(base);
    if (pending === undefined) return;
    clearTimeout(pending.starts);
    await pending.running?.catch(() => undefined);
    if (this.#pending.delete(base)) rmSync(this.#base(base), { force: true });
  }

  /** Whether a base is there, or will be. */
  knows(base: string): boolean {
    return this.#pending.has(base) || this.#folders.has("base", base);
  }

  /** Whether the files of a volume may be neither those of its base nor what was made of them. */
  hasLost(volume: string): boolean {
    return this.#lost.has(volume);
  }

  #tip(project: string): string {
    return join(this.#folder, "tips", checkedId(project));
  }

  #base(base: string): string {
    return join(this.#folder, "bases", checkedId(base));
  }

  /** Ends what is under way. What fails is left to the next server. */
  async close(): Promise<void> {
    for (const base of this.#pending.keys()) await this.of(base)?.catch(() => undefined);
    while (this.#syncs.size > 0) await Promise.all(this.#syncs);
  }
}
