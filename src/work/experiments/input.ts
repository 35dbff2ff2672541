/** An experiment as it is asked for, with everything that was left out. */
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { DEFAULT_RULES, type Attempt, type ExperimentInput } from "../../base/schema/experiment.ts";
import { folderIn, type ProjectView } from "../../sandbox/projects/projects.ts";
import type { ExperimentRow } from "../../base/store/rows.ts";
import { foldersOf, type CheckSettings } from "../checks/checks.ts";

const COMMAND_MS = 10 * 60_000;

export function newExperiment(input: ExperimentInput, { row: { path: project }, config }: ProjectView, inside: string): ExperimentRow {
  const checks = input.checks ?? config.checks;
  const pick = input.pick ?? (checks.length > 0 ? "auto" : "none");
  if (pick === "auto" && checks.length === 0 && input.measure === undefined)
    throw new VivError("invalid_input", "Nothing tells which attempt is best: there is no check and no measure.", {
      remedy: "Give a check or a measure, or let a person pick.",
    });
  if (input.promote && pick === "none")
    throw new VivError("invalid_input", "With pick none there is no winner to promote.", {
      remedy: "Give a check, or let a person pick.",
    });
  const names = input.attempts.map(({ name }, index) => name ?? String(index + 1));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new VivError("invalid_input", `Two attempts are called ${twice}.`);
  return {
    id: newId("experiment"),
    project,
    ...(input.git === undefined ? {} : { git: input.git.url }),
    ...(input.inputs === undefined ? {} : { inputs: input.inputs }),
    ...(input.empty === true ? { empty: true } : {}),
    state: "queued",
    reason: null,
    winner: null,
    attempts: input.attempts.map((approach, index) => newAttempt(index + 1, names[index] ?? "", lineOf(approach))),
    baseline: null,
    checks,
    setup: input.setup ?? config.setup ?? null,
    pick,
    rules: input.rank ?? [...DEFAULT_RULES],
    repeat: input.repeat,
    promotion: null,
    createdAt: new Date().toISOString(),
    endedAt: null,
    input: { ...input, cwd: folderIn(inside, input.cwd) },
    origin: null,
    protect: input.protect ?? config.protect ?? null,
  };
}

/** What an approach is called where commands are shown. */
function lineOf({ command, agent }: ExperimentInput["attempts"][number]): string {
  if (command !== undefined) return command;
  return agent === undefined ? "" : `${agent.agent}${agent.model === undefined ? "" : ` (${agent.model})`}: ${agent.task}`;
}

export function newAttempt(index: number, name: string, command: string, run: string | null = null): Attempt {
  return {
    index,
    name,
    command,
    run,
    state: "queued",
    reason: null,
    sandbox: null,
    snapshot: null,
    exitCode: null,
    output: "",
    wallMs: null,
    cpuMs: null,
    peakMemoryBytes: null,
    networkBytes: null,
    cost: null,
    diff: null,
    sideChanges: [],
    protectedChanged: [],
    fewerTests: null,
    checked: null,
    verified: null,
    needs: [],
    flags: [],
    reruns: 0,
    rank: null,
    startedAt: null,
    endedAt: null,
  };
}

export function commandTimeoutMs({ input }: ExperimentRow): number {
  return input.timeoutMs ?? COMMAND_MS;
}

/** How a state is judged: a fresh clone is set up first, the state that an attempt left is not. */
export function checkSettings(row: ExperimentRow, state: "fresh" | "left"): CheckSettings {
  return {
    checks: row.checks,
    setup: state === "fresh" ? row.setup : null,
    repeat: row.repeat,
    checkTimeoutMs: row.input.checkTimeoutMs ?? commandTimeoutMs(row),
    measure: row.input.measure ?? null,
    folders: foldersOf(row),
  };
}
