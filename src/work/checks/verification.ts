/** Whether a state passes its checks: one that is there, or one made by applying a change alone to a fresh clone. */
import type { MergedChange } from "../../machine/merge/three-way.ts";
import type { Verdict } from "../../base/schema/experiment.ts";
import { applyInside } from "../../sandbox/files/apply-inside.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { judgeOnce, combineVerdicts, type CheckSettings } from "./checks.ts";
import type { Clones } from "./clones.ts";

type VerificationParts = Pick<Parts, "live">;

export type { CheckSettings } from "./checks.ts";

/** Today's reality, as a caller sees it. */
export interface HostProject {
  readonly project: string;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly user?: string | undefined;
  readonly unwalled?: boolean | undefined;
}

export class Verification {
  readonly #parts: VerificationParts;
  readonly #sandboxes: Sandboxes;
  readonly #clones: Clones;

  constructor(parts: VerificationParts, sandboxes: Sandboxes, clones: Clones) {
    this.#parts = parts;
    this.#sandboxes = sandboxes;
    this.#clones = clones;
  }

  /** Setup and checks in a live sandbox, one pass after the other in the same state. */
  async judge(row: SandboxRow, how: CheckSettings, signal: AbortSignal): Promise<Verdict> {
    const passes: Verdict[] = [];
    for (let pass = 0; pass < how.repeat; pass += 1) passes.push(await judgeOnce(this.#sandboxes.commands, row, how, signal));
    return combineVerdicts(passes);
  }

  /** A change alone on a fresh clone of today's reality. `contents` is a folder of ours with what it brings. */
  async verifyOn(
    reality: HostProject,
    changes: readonly MergedChange[],
    contents: string,
    how: CheckSettings,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const make = async (): Promise<SandboxRow> => {
      const { id } = await this.#clones.patiently(() => this.#create(reality), signal);
      return this.#sandboxes.find(id);
    };
    return this.passes(make, (row) => this.apply(row, changes, contents), how, signal);
  }

  /** Every pass in a state of its own: what a check writes is not there in the next pass. */
  async passes(
    make: () => Promise<SandboxRow>,
    prepare: (row: SandboxRow) => Promise<void>,
    how: CheckSettings,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const passes: Verdict[] = [];
    for (let pass = 0; pass < how.repeat; pass += 1) {
      const row = await make();
      try {
        await prepare(row);
        passes.push(await judgeOnce(this.#sandboxes.commands, row, how, signal));
      } finally {
        this.#clones.discard(row.id);
      }
    }
    return combineVerdicts(passes);
  }

  /** Writes a change into a live sandbox. */
  async apply(row: SandboxRow, changes: readonly MergedChange[], contents: string): Promise<void> {
    const live = this.#parts.live.require(row);
    await applyInside(live.walls.files, projectInside(row), row.user, changes, contents);
  }

  #create({ project, env, user, unwalled }: HostProject): ReturnType<Sandboxes["create"]> {
    return this.#sandboxes.create({
      project,
      idleMs: 0,
      labels: { role: "verification" },
      ...(env === undefined ? {} : { env: { ...env } }),
      ...(user === undefined ? {} : { user }),
      ...(unwalled === undefined ? {} : { unwalled }),
    });
  }
}
