/** Capture where no walls can be had: the project copied whole by Node alone, what did not change linked from the copy before. */
import { lstatSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KeyedLocks } from "../../../base/host/locks.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { Staleness } from "../../../base/schema/files.ts";
import { newId } from "../../../base/schema/ids.ts";
import { compareTrees } from "../../volumes/folder/compare.ts";
import { copyTree } from "../../volumes/folder/trees.ts";
import type { FolderBases } from "../../volumes/folder/bases.ts";
import { PROJECT_SLOT, projectIn } from "../../volumes/volumes.ts";
import type { BroughtBase, Capture, CaptureRequest } from "../capture.ts";
import type { Base } from "../../../base/store/rows.ts";
import { makeReport } from "./report.ts";

const MOST_CHANGES = 1000;

type Change = Staleness["changes"][number];

interface Last {
  /** The request it was captured for; another one starts over. */
  readonly key: string;
  readonly base: Base;
  /** Paths that were not entered. */
  readonly skip: ReadonlySet<string>;
}

export class FolderCapture implements Capture {
  readonly #bases: FolderBases;
  readonly #locks = new KeyedLocks();
  readonly #last = new Map<string, Last>();
  /** Bases that no sandbox uses, kept for the next clone of a project that has not changed since. */
  readonly #forgotten = new Set<string>();

  constructor(bases: FolderBases) {
    this.#bases = bases;
  }

  /** Each base is a copy of its own. */
  last(): undefined {
    return undefined;
  }

  async base(request: CaptureRequest, signal?: AbortSignal): Promise<Base> {
    return this.#locks.run(request.project, async () => {
      if (signal?.aborted === true) throw new VivError("cancelled", "The capture of the project was cancelled.");
      if (lstatSync(request.path, { throwIfNoEntry: false })?.isDirectory() !== true)
        throw new VivError("project_not_found", `The project ${request.path} does not exist any more.`);
      const last = this.#usable(request);
      const base = last !== undefined && (await this.#unchanged(request, last)) ? last.base : await this.#take(request, last);
      this.#forgotten.delete(base.id);
      return base;
    });
  }

  async bring(request: CaptureRequest): Promise<BroughtBase> {
    return { base: await this.base(request), volume: "untouched" };
  }

  async take(): Promise<never> {
    throw new VivError("unsupported", "A sandbox that starts from no project needs walls, which this machine does not have.");
  }

  #usable(request: CaptureRequest): Last | undefined {
    const last = this.#last.get(request.project);
    return last?.key === JSON.stringify(request) && this.#bases.frozen(last.base.id) !== undefined ? last : undefined;
  }

  async #unchanged(request: CaptureRequest, last: Last): Promise<boolean> {
    const frozen = this.#bases.frozen(last.base.id);
    if (frozen === undefined) return false;
    return (await compareTrees(frozen, request.path, { leaveOut: (path) => last.skip.has(path.toString()) })).length === 0;
  }

  async #take(request: CaptureRequest, last: Last | undefined): Promise<Base> {
    const reuse = last === undefined ? undefined : this.#bases.frozen(last.base.id);
    const id = newId("base");
    const takenAt = new Date().toISOString();
    const left = skipped(request);
    const tip = await this.#bases.openTip(request.project);
    const copied = await copyTree(request.path, projectIn(tip.folder), {
      skip: left,
      tolerant: true,
      mostBytes: request.limitBytes,
      ...(reuse === undefined ? {} : { reuse }),
    });
    const skip = new Set([...left, ...copied.unreadable]);
    await writeFile(`${tip.manifests}${PROJECT_SLOT}`, JSON.stringify({ skip: [...skip] }), { mode: 0o600 });
    await this.#bases.freeze(request.project, id);
    const report = makeReport(request, copied);
    const base: Base = {
      id,
      project: request.project,
      takenAt,
      roots: [{ path: request.path, slot: PROJECT_SLOT }],
      live: [],
      readOnly: [],
      report,
    };
    const before = this.#last.get(request.project);
    this.#last.set(request.project, { key: JSON.stringify(request), base, skip });
    if (before !== undefined) await this.#supersede(before.base.id);
    return base;
  }

  async #supersede(base: string): Promise<void> {
    if (this.#forgotten.delete(base)) await this.#bases.remove(base);
  }

  async staleness(base: Base, request: CaptureRequest): Promise<Staleness> {
    const frozen = this.#bases.frozen(base.id);
    if (frozen === undefined) throw new VivError("not_found", `The base ${base.id} is gone.`);
    const skip = await this.#skipOf(base.id);
    const found = await compareTrees(frozen, request.path, { leaveOut: (path) => skip.has(path.toString()) });
    const changes = new Map<string, Change>();
    for (const { path, status } of found) {
      const change = shown({ path: path.toString(), status });
      if (change !== undefined) changes.set(change.path, change);
    }
    const all = [...changes.values()].toSorted((one, other) => (one.path < other.path ? -1 : 1));
    const { takenAt } = base;
    return {
      takenAt,
      ageMs: Math.max(0, Date.now() - Date.parse(takenAt)),
      stale: all.length > 0,
      changes: all.slice(0, MOST_CHANGES),
      more: all.length > MOST_CHANGES,
    };
  }

  async #skipOf(base: string): Promise<ReadonlySet<string>> {
    const kept: unknown = JSON.parse(await readFile(`${await this.#bases.manifests(base)}${PROJECT_SLOT}`, "utf8"));
    const list: unknown = typeof kept === "object" && kept !== null && "skip" in kept ? kept.skip : [];
    return new Set(Array.isArray(list) ? list.filter((path) => typeof path === "string") : []);
  }

  /** Everything is copied. */
  async shared(): Promise<null> {
    return null;
  }

  async forget(base: string): Promise<void> {
    const current = [...this.#last.values()].some((last) => last.base.id === base);
    if (current) this.#forgotten.add(base);
    else await this.#bases.remove(base);
  }

  async close(): Promise<void> {
    for (const project of this.#last.keys()) {
      await this.#locks.run(project, async () => {
        const last = this.#last.get(project);
        this.#last.delete(project);
        if (last !== undefined) await this.#supersede(last.base.id);
      });
    }
  }
}

/**
 * Paths relative to the project that are not copied. A .git that is a file names the folder of a real repository:
 * git inside the copy would change that one.
 */
function skipped(request: CaptureRequest): Set<string> {
  const excluded = request.exclude.map((path) => path.replace(/^\.?\/+|\/+$/g, "")).filter((path) => path !== "");
  const linked = lstatSync(join(request.path, ".git"), { throwIfNoEntry: false })?.isDirectory() === false;
  return new Set([...excluded, ...(linked ? [".git"] : [])]);
}

/** Git's own files are one change, and only when a branch or HEAD moved: `git status` alone rewrites the index. */
function shown(change: Change): Change | undefined {
  const inside = /^(?:(.*)\/)?\.git(?:\/(.*))?$/.exec(change.path);
  if (inside === null) return change;
  if (!/^(HEAD|packed-refs|refs\/(?!remotes\/).*)$/.test(inside[2] ?? "")) return undefined;
  return { path: join(inside[1] ?? "", ".git"), status: "changed" };
}
