/** What the server sees of a run by itself: looked at now and then, and what commands of the agent say of the run's own checks. */
import { LIMITS } from "../../base/schema/limits.ts";
import type { RunEvent } from "../../base/schema/run.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { countTests } from "../checks/test-counts.ts";
import type { Observation } from "../guardian/observation.ts";
import { commandOf } from "../guardian/outside.ts";
import { BackgroundPrograms } from "./background-programs.ts";
import type { CloneState } from "./clone-state.ts";
import { spentBy } from "./run-cost.ts";
import type { RunWork } from "./run-work.ts";
import type { RunsParts } from "./runs.ts";

/** What one look gives. Every field is named here, so that none can be forgotten; undefined where it can't be seen. */
type Look = { readonly [Key in Exclude<keyof Observation, "at" | "check">]-?: Observation[Key] | undefined };

export interface ObserverParts {
  readonly parts: Pick<RunsParts["parts"], "store" | "live" | "backends">;
  readonly models: Pick<RunsParts["models"], "openRequests">;
  readonly work: Pick<RunWork, "journal" | "sandbox" | "isPaused">;
  readonly clone: Pick<CloneState, "look" | "changed">;
  /** Whether the agent's requests to models pass the gateway. */
  readonly usesGateway: boolean;
  /** Lines that judge the run. */
  readonly checks: readonly string[];
}

export class RunObserver {
  readonly #all: ObserverParts;
  readonly #background = new BackgroundPrograms();
  /** Calls that run a check and have no result yet. */
  readonly #checking = new Set<string>();

  constructor(all: ObserverParts) {
    this.#all = all;
  }

  /** What an event shows beside itself. */
  heard(event: RunEvent): Observation | undefined {
    this.#background.heard(event);
    if (event.type === "file_change") this.#all.clone.changed();
    if (event.type === "turn") this.#checking.clear();
    if (event.type === "tool_call" && this.#runsCheck(event.input)) this.#checking.add(event.call);
    if (event.type !== "tool_result" || !this.#checking.delete(event.call)) return undefined;
    const counts = countTests(event.output);
    return counts === null ? undefined : { at: Date.parse(event.at), check: { passed: counts.passed, failed: counts.failed } };
  }

  /** Another agent is at work. */
  restarted(): void {
    this.#checking.clear();
    this.#all.clone.changed();
  }

  async look(): Promise<Observation> {
    const { parts, models, work, clone, usesGateway } = this.#all;
    const { sandbox } = work;
    const { row } = work.journal;
    const walls = parts.live.get(sandbox.id)?.walls;
    const [cost, state, use] = [await spentBy(parts.store, row), await clone.look(sandbox), await walls?.usage()];
    const processes = sandbox.walled ? await walls?.processes(LIMITS.shownProcesses) : undefined;
    const requests = models.openRequests(sandbox.id);
    const { limits } = sandbox;
    const look: Look = {
      use: known({
        budget: part(cost, row.budget),
        steps: part(row.steps, row.mostSteps),
        memory: part(use?.memoryBytes, limits.memoryBytes),
        processes: part(use?.processes, limits.processes),
        disk: part(await this.#diskBytes(sandbox), limits.diskBytes),
      }),
      cost,
      // An agent that was never seen to ask a model may do so by a way of its own.
      modelRequests: usesGateway || requests > 0 || cost > 0 ? requests : undefined,
      background: processes && this.#background.count(processes.filter((one) => one.state !== "Z" && one.state !== "X")),
      cpuMs: use?.cpuMs ?? undefined,
      paused: await work.isPaused(),
      personAsked: row.activity === "person",
      clone: state?.hash,
      files: state?.files,
    };
    return { at: Date.now(), ...known(look) };
  }

  /** Where that costs nothing to ask. */
  async #diskBytes(sandbox: SandboxRow): Promise<number | undefined> {
    const { storage } = this.#all.parts.backends.of(sandbox);
    return storage.capabilities.quota === "hard" ? storage.disks.usage(sandbox.id) : undefined;
  }

  /** Whether a call runs one of the checks, alone or among other commands. */
  #runsCheck(input: unknown): boolean {
    const command = commandOf(input);
    return command !== null && this.#all.checks.some((check) => ` ${words(command)} `.includes(` ${words(check)} `));
  }
}

/** Commands of a line, apart from what joins them. */
function words(line: string): string {
  return line
    .replaceAll(/[;&|()]+|\d?>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function part(value: number | null | undefined, most: number | null): number | undefined {
  return value == null || most === null || most === 0 ? undefined : value / most;
}

/** Without what is undefined. */
function known<Fields extends object>(fields: Fields): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> };
}
