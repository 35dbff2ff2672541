/**
 * Fires when files of a project change. Folders are watched; where they can't be, files are looked at from time to time. A sum over
 * names, sizes and times of all files tells the next server whether something changed while none was there.
 */
import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { errorText, type Logger } from "../../../base/host/log.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Clock } from "../clock.ts";
import type { Causes } from "../self-caused.ts";
import type { FilePatterns } from "./file-patterns.ts";
import type { Cursor, Saw, Trouble, TriggerSource } from "./trigger.ts";
import { WatchedFolders } from "./watched-folders.ts";

/** Programs that save a file do so in several steps. */
const SETTLE_MS = 5;
/** What could not be kept is told again after this time. */
const AGAIN_MS = 1_000;
const NAMED = 5;
const WORD = 2n ** 64n;

export interface FilesTriggerParts {
  readonly project: string;
  readonly patterns: FilePatterns;
  readonly clock: Clock;
  readonly log: Logger;
  readonly saw: Saw;
  readonly trouble: Trouble;
  /** Automations whose promotions wrote these paths; undefined where none did. */
  readonly causesOf: (paths: readonly string[]) => Promise<Causes>;
  /** Files that are watched at most. */
  readonly mostFiles?: number;
}

export class FilesTrigger implements TriggerSource {
  readonly #all: FilesTriggerParts;
  readonly #cursor: Cursor;
  readonly #folders: WatchedFolders;
  /** What is known of each file that matches, by path. */
  readonly #files = new Map<string, string>();
  #sum = 0n;
  /** Paths to look at, relative to the project; a folder stands for what is below it. */
  #touched = new Set<string>();
  /** Paths that changed, and that are not known to be kept. */
  readonly #changed = new Set<string>();
  #isStarted = false;
  #isFull = false;
  #isScanning = false;
  #isStopped = false;
  #cancel: (() => void) | undefined;
  #work: Promise<void> = Promise.resolve();

  constructor(all: FilesTriggerParts, cursor: Cursor) {
    this.#all = all;
    this.#cursor = cursor;
    this.#folders = new WatchedFolders(
      (folder, name) => this.#hear(folder, name),
      () => this.#scanInstead(),
    );
  }

  async start(): Promise<void> {
    this.#isStarted = true;
    await this.#refresh("", undefined);
    const before = this.#cursor["sum"];
    const sum = String(this.#sum);
    if (before === undefined) await this.#all.saw([], this.#nextCursor());
    else if (before !== sum) {
      const since = Date.parse(String(this.#cursor["at"] ?? ""));
      const changed = await this.#changedSince(since);
      const named = changed.length === 0 ? "Files" : namesOf(changed);
      await this.#tell(`${named} changed while no server was there.`, changed);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    this.#folders.close();
    await this.#work;
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    const count = this.#files.size;
    const watched = count === 1 ? "1 file is watched." : `${count} files are watched.`;
    return { wouldFire: this.#touched.size > 0, seen: this.#isStarted ? watched : "It rests: no files are watched." };
  }

  #hear(folder: string, name: string | null): void {
    if (this.#isStopped) return;
    const path = relative(this.#all.project, name === null ? folder : join(folder, name));
    if (!this.#all.patterns.matches(path) && !this.#all.patterns.mayMatchBelow(path)) return;
    this.#touched.add(path);
    this.#cancel ??= this.#all.clock.after(SETTLE_MS, () => this.#lookAtTouched());
  }

  #lookAtTouched(): void {
    this.#cancel = undefined;
    this.#work = this.#work
      .then(() => this.#update())
      .catch((error: unknown) => {
        this.#all.log.warn("changed files were not looked at", { project: this.#all.project, error: errorText(error) });
        if (!this.#isStopped) this.#cancel ??= this.#all.clock.after(AGAIN_MS, () => this.#lookAtTouched());
      });
  }

  async #update(): Promise<void> {
    if (this.#isStopped) return;
    const touched = this.#touched;
    this.#touched = new Set();
    for (const path of touched) await this.#refresh(path, this.#changed);
    if (this.#changed.size === 0) return;
    const paths = [...this.#changed].toSorted();
    await this.#tell(`${namesOf(paths)} changed.`, paths);
    this.#changed.clear();
  }

  async #tell(text: string, paths: readonly string[]): Promise<void> {
    const causes = await this.#all.causesOf(paths);
    await this.#all.saw([{ key: null, text, causes }], this.#nextCursor());
  }

  #nextCursor(): Cursor {
    return { sum: String(this.#sum), at: new Date(this.#all.clock.now()).toISOString() };
  }

  /** Brings what is known of a path up to date, and of all below it. */
  async #refresh(path: string, changed: Set<string> | undefined): Promise<void> {
    const seen = new Set<string>();
    await this.#walk(path, changed, seen);
    for (const known of this.#below(path)) if (!seen.has(known)) this.#note(known, undefined, changed);
  }

  async #walk(path: string, changed: Set<string> | undefined, seen: Set<string>): Promise<void> {
    const { project, patterns } = this.#all;
    const stats = await lstat(join(project, path)).catch(() => undefined);
    if (stats?.isDirectory() === true) {
      if (!patterns.mayMatchBelow(path)) return;
      if (!this.#isScanning) this.#folders.add(join(project, path));
      for (const name of await readdir(join(project, path)).catch(() => []))
        await this.#walk(path === "" ? name : `${path}/${name}`, changed, seen);
    } else if (stats !== undefined && patterns.matches(path)) {
      seen.add(path);
      this.#note(path, `${stats.size} ${stats.mtimeMs} ${stats.ino}`, changed);
    }
  }

  #below(folder: string): string[] {
    if (this.#files.has(folder)) return [folder];
    return [...this.#files.keys()].filter((path) => folder === "" || path.startsWith(`${folder}/`));
  }

  #note(path: string, mark: string | undefined, changed: Set<string> | undefined): void {
    const before = this.#files.get(path);
    if (before === mark) return;
    if (before === undefined && this.#files.size >= (this.#all.mostFiles ?? LIMITS.watchedFiles)) return this.#sayFull();
    if (before !== undefined) this.#sum = (this.#sum + WORD - numberOf(path, before)) % WORD;
    if (mark === undefined) this.#files.delete(path);
    else {
      this.#files.set(path, mark);
      this.#sum = (this.#sum + numberOf(path, mark)) % WORD;
    }
    changed?.add(path);
  }

  #sayFull(): void {
    if (this.#isFull) return;
    this.#isFull = true;
    const most = this.#all.mostFiles ?? LIMITS.watchedFiles;
    this.#all.trouble(`More than ${most} files match: changes of those beyond are not seen. Narrow its paths.`);
  }

  async #changedSince(since: number): Promise<string[]> {
    const found: string[] = [];
    for (const path of this.#files.keys()) {
      const stats = await lstat(join(this.#all.project, path)).catch(() => undefined);
      if (stats !== undefined && stats.ctimeMs > since) found.push(path);
    }
    return found.toSorted();
  }

  #scanInstead(): void {
    if (this.#isScanning) return;
    this.#isScanning = true;
    this.#folders.close();
    this.#all.trouble(`There are too many folders to be watched: files are looked at every ${LIMITS.scanEveryMs / 1000} s.`);
    const again = (): void => {
      if (this.#isStopped) return;
      this.#touched.add("");
      this.#lookAtTouched();
      this.#all.clock.after(LIMITS.scanEveryMs, again);
    };
    this.#all.clock.after(LIMITS.scanEveryMs, again);
  }
}

function numberOf(path: string, mark: string): bigint {
  return createHash("sha256").update(`${path}\0${mark}`).digest().readBigUInt64BE(0);
}

function namesOf(paths: readonly string[]): string {
  const named = paths.slice(0, NAMED).join(", ");
  return paths.length > NAMED ? `${named} and ${paths.length - NAMED} more` : named;
}
