/** New limits for a sandbox whose processes run. */
import { givenTo } from "../../base/policy/ceiling.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Parts } from "../shared/parts.ts";
import { notRunning } from "../shared/state.ts";

type LimitChangesParts = Pick<Parts, "store" | "backends" | "user" | "live">;

export type LimitChange = { readonly [Key in "cpus" | "memoryBytes" | "processes"]?: Limits[Key] | undefined };

/** Those that a sandbox may ask more of. */
export function chosenLimits({ cpus, memoryBytes }: LimitChange = {}): NonNullable<SandboxRow["givenLimits"]> {
  return { ...(cpus === undefined ? {} : { cpus }), ...(memoryBytes === undefined ? {} : { memoryBytes }) };
}

export class LimitChanges {
  readonly #parts: LimitChangesParts;

  constructor(parts: LimitChangesParts) {
    this.#parts = parts;
  }

  /** What this machine can't hold, or must not give to any sandbox. */
  refuse(row: SandboxRow, change: LimitChange): void {
    const { ceilings } = this.#parts.user;
    const over = (key: string, wish: number | undefined, ceiling: number | undefined): void => {
      if (wish !== undefined && ceiling !== undefined && wish > ceiling)
        throw new VivError("invalid_input", `${key} ${wish} is over this machine's ceiling of ${ceiling}.`);
    };
    over("cpus", change.cpus, ceilings.cpus);
    over("memoryBytes", change.memoryBytes, ceilings.memory);
    over("processes", change.processes, ceilings.processes);
    const { limits } = this.#parts.backends.of(row).driver.capabilities;
    if (limits === "none" || (limits === "watched" && change.cpus !== undefined && change.cpus !== row.limits.cpus))
      throw new VivError("limit_unsupported", "This machine can't hold that limit.");
  }

  /** Called with the sandbox's lock held. What a person gives is what its agents can't go over by themselves. */
  async change(row: SandboxRow, change: LimitChange, by: "person" | "sandbox"): Promise<SandboxRow> {
    this.refuse(row, change);
    const live = this.#parts.live.get(row.id);
    if (live === undefined) throw notRunning(row);
    const limits: Limits = {
      ...row.limits,
      cpus: change.cpus ?? row.limits.cpus,
      memoryBytes: change.memoryBytes ?? row.limits.memoryBytes,
      processes: change.processes ?? row.limits.processes,
    };
    const next: SandboxRow = {
      ...row,
      limits,
      givenLimits: chosenLimits({ ...givenTo(row), ...(by === "person" ? chosenLimits(change) : {}) }),
    };
    try {
      await live.walls.limit(limits);
      await this.#parts.store.change(async (writing) => {
        await writing.sandboxes.put(next);
        await writing.event("sandbox.limited", row.id, { ...limits });
      });
    } catch (error) {
      // Part of it may hold already: what the row says is to hold.
      await live.walls.limit(row.limits);
      if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
      throw new VivError("busy", `Sandbox ${row.name} uses more memory than that.`, {
        cause: error,
        remedy: "End something inside first.",
      });
    }
    return next;
  }
}
