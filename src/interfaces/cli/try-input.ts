/** What `viv try` asks the server for, from options and from a file. */
import { repository, REPOSITORY_OPTIONS } from "./starting-point.ts";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { COMPANION_ROLES, KEEPS, PICKS, RANKING_RULES } from "../../base/schema/choices.ts";
import type { InputOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { wholeNumber } from "../../base/schema/numbers.ts";
import type { Invocation, OptionDeclarations } from "./command.ts";
import { companions, WITH_SUMMARY } from "./companions.ts";
import { definedOnly } from "./defined-only.ts";
import { isWithin } from "./within.ts";
import { usageError } from "./values.ts";

type Input = InputOf<"startExperiment">;
type Attempts = Input["attempts"];

export const TRY_OPTIONS = {
  check: { type: "list", short: "c", value: "COMMAND", summary: "Judges an attempt by its exit code; several must all pass" },
  setup: { type: "text", value: "COMMAND", summary: "Prepares a fresh clone before its checks, such as `npm ci`" },
  attempt: { type: "list", short: "a", value: "NAME=COMMAND", summary: "An approach with a name; may be given several times" },
  agent: {
    type: "text",
    value: "AGENTS",
    summary: "Agents with commas that do what COMMAND says in plain words, such as claude,codex; AGENT:MODEL chooses a model",
  },
  with: { type: "list", value: "ROLE", completes: COMPANION_ROLES, summary: WITH_SUMMARY },
  pick: {
    type: "text",
    completes: PICKS,
    value: "WHO",
    summary: "Who chooses the winner: auto (the rules), ask (you), none; auto where there are checks, else none",
  },
  promote: { type: "flag", summary: "Bring the winner into the project at once" },
  from: {
    type: "text",
    value: "RUN",
    completes: "sandbox",
    summary: "Begin as this run left its files, agents with its conversation; or as a sandbox or a snapshot is",
  },
  file: {
    type: "text",
    short: "f",
    value: "FILE",
    completes: "path",
    summary: "Read JSON with the keys of the API from a file, - for stdin; options win",
  },
  detach: { type: "flag", short: "d", summary: "Print the id and leave it running" },
  resume: {
    type: "text",
    value: "ID",
    completes: "experiment",
    summary: "Start nothing, and watch this experiment as the command did that started it: ctrl-C stops it",
  },
  "max-parallel": { type: "integer", value: "N", summary: "Attempts at once; by the machine if left out" },
  timeout: { type: "duration", value: "TIME", summary: "Time for one attempt's command, such as 90s; 10m if left out" },
  "check-timeout": { type: "duration", value: "TIME", summary: "Time for one check; as for the command if left out" },
  keep: {
    type: "text",
    completes: KEEPS,
    value: "WHICH",
    summary: "Sandboxes that stay when it is over: all, winner or none; all if left out",
  },
  rank: {
    type: "text",
    completes: RANKING_RULES,
    value: "RULES",
    summary: `What is better, in this order, with commas: ${RANKING_RULES.join(", ")}; checks,tests,protected,measure,diff,time if left out`,
  },
  repeat: { type: "integer", value: "N", summary: "Run each check N times, to find flaky ones" },
  include: { type: "list", value: "PATH", completes: "path", summary: "Count this path as part of the change although git ignores it" },
  protect: {
    type: "list",
    value: "PATTERN",
    summary: "Files the checks depend on, judged with the original ones; tests and their configuration if left out",
  },
  "ignore-exit": { type: "flag", summary: "Let an attempt win whose command failed" },
  measure: { type: "text", value: "COMMAND", summary: "Prints a number as its last line that says how good an attempt is" },
  maximise: { type: "flag", summary: "More of --measure is better" },
  minimise: { type: "flag", summary: "Less of --measure is better, which is the default" },
  priority: { type: "text", value: "N", summary: "From -100 to 100; larger goes first where attempts wait" },
  project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "A folder in the project; the current one if left out" },
  ...REPOSITORY_OPTIONS,
  cwd: {
    type: "text",
    short: "w",
    value: "PATH",
    completes: "path",
    summary: "Run attempts, and the lines given with them, in this folder; this one if it is in the project, else the project's",
  },
  cpus: { type: "number", value: "N", summary: "CPU cores of each attempt" },
  memory: { type: "size", value: "SIZE", summary: "Memory of each attempt, such as 512m or 4g" },
  unwalled: { type: "flag", summary: "On a system without walls: work on copies of the folder WITHOUT isolation" },
} as const satisfies OptionDeclarations;

type Options = Invocation<typeof TRY_OPTIONS>["options"];
type Caller = Pick<Invocation, "cwd" | "env">;

export async function tryInput(options: Options, lines: readonly string[], caller: Caller): Promise<Input> {
  const {
    project,
    git,
    attempts: listed,
    cwd: folderInFile,
    ...inFile
  } = options.file === undefined ? {} : await readInput(options.file, caller.cwd);
  if (options.with.length > 0 && options.agent === undefined) throw usageError("--with goes with --agent.");
  const given =
    options.agent === undefined ? lines.map((command) => ({ command })) : agentAttempts(options.agent, lines, companions(options.with));
  const attempts = [...(listed ?? []), ...given, ...options.attempt.map(namedAttempt)];
  if (attempts.length === 0)
    throw usageError(
      "viv try needs something to try.",
      "Give each approach as one quoted word: viv try 'cmd A' 'cmd B' --check 'npm test'",
    );
  return {
    ...inFile,
    ...start(options, caller, { project, cwd: folderInFile, git }),
    attempts,
    env: definedOnly(caller.env),
    ...checkInput(options),
    ...running(options),
  };
}

/** What attempts start from, and where they run: a file says it as far as the options don't. */
function start(options: Options, caller: Caller, inFile: Pick<Input, "project" | "cwd" | "git">): Pick<Input, "project" | "cwd" | "git"> {
  const git = repository(options);
  if (git !== undefined && options.project !== undefined) throw usageError("--project and --git exclude each other.");
  const cloned = git ?? (options.project === undefined ? inFile.git : undefined);
  const cwd = options.cwd ?? inFile.cwd;
  if (cloned !== undefined) return { git: cloned, ...(cwd === undefined ? {} : { cwd }) };
  const project = options.project === undefined ? (inFile.project ?? caller.cwd) : resolve(caller.cwd, options.project);
  return { project, ...folder(options, caller, inFile.project, inFile.cwd) };
}

/** The caller's folder where that may be in the project, as for a command in a sandbox. */
function folder({ cwd, project }: Options, caller: Caller, inFile: string | undefined, given: string | undefined): Pick<Input, "cwd"> {
  if (cwd !== undefined) return { cwd: resolve(caller.cwd, cwd) };
  if (given !== undefined) return { cwd: given };
  const named = project === undefined ? inFile : resolve(caller.cwd, project);
  return named === undefined || isWithin(named, caller.cwd) ? { cwd: caller.cwd } : {};
}

/** Every agent with every task. */
function agentAttempts(agents: string, tasks: readonly string[], may: ReturnType<typeof companions>): Attempts {
  if (tasks.length === 0) throw usageError("--agent needs a task.", "Such as: viv try 'Fix the failing test' --agent claude,codex");
  const named = agents.split(",").map((text) => text.trim());
  const choices = named.map((text) => {
    const [agent = "", ...model] = text.split(":");
    if (agent === "") throw usageError(`--agent takes names with commas, not ${JSON.stringify(agents)}.`);
    return { agent, ...(model.length === 0 ? {} : { model: model.join(":") }) };
  });
  const names = choices.map(({ agent }, index) => {
    const same = choices.filter((other) => other.agent === agent).length > 1;
    return same ? `${agent}-${index + 1}` : agent;
  });
  return tasks.flatMap((task, number) =>
    choices.map((choice, index) => ({
      name: tasks.length === 1 ? (names[index] ?? "") : `${names[index] ?? ""}-${number + 1}`,
      agent: { ...choice, ...may, task },
    })),
  );
}

function namedAttempt(text: string): Attempts[number] {
  const equals = text.indexOf("=");
  if (equals < 1 || equals === text.length - 1) throw usageError(`--attempt takes NAME=COMMAND, not ${JSON.stringify(text)}.`);
  return { name: text.slice(0, equals), command: text.slice(equals + 1) };
}

function checkInput(options: Options): Partial<Input> {
  const pick = oneOf("--pick", PICKS, options.pick);
  const rank = options.rank?.split(",").map((rule) => oneOf("--rank", RANKING_RULES, rule.trim()));
  return {
    ...(options.check.length === 0 ? {} : { checks: [...options.check] }),
    ...(options.setup === undefined ? {} : { setup: options.setup }),
    ...(pick === undefined ? {} : { pick }),
    ...(options.promote ? { promote: true } : {}),
    ...(rank === undefined ? {} : { rank: rank.filter((rule) => rule !== undefined) }),
    ...(options.repeat === undefined ? {} : { repeat: options.repeat }),
    ...(options.protect.length === 0 ? {} : { protect: [...options.protect] }),
    ...(options["ignore-exit"] ? { ignoreExit: true } : {}),
    ...measuring(options),
  };
}

function measuring({ measure, maximise, minimise }: Options): Pick<Partial<Input>, "measure"> {
  if (maximise && minimise) throw usageError("Choose one of --maximise and --minimise.");
  if (measure === undefined && (maximise || minimise))
    throw usageError(`${maximise ? "--maximise" : "--minimise"} needs --measure COMMAND.`, "The command prints the number.");
  return measure === undefined ? {} : { measure: { command: measure, goal: maximise ? "max" : "min" } };
}

function running(options: Options): Partial<Input> {
  const keep = oneOf("--keep", KEEPS, options.keep);
  const limits = {
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    ...(options.memory === undefined ? {} : { memoryBytes: options.memory }),
  };
  return {
    ...(options["max-parallel"] === undefined ? {} : { maxParallel: options["max-parallel"] }),
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(options["check-timeout"] === undefined ? {} : { checkTimeoutMs: options["check-timeout"] }),
    ...(keep === undefined ? {} : { keep }),
    ...(options.include.length === 0 ? {} : { include: [...options.include] }),
    ...(options.priority === undefined ? {} : { priority: priority(options.priority) }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(options.unwalled ? { unwalled: true } : {}),
  };
}

function priority(text: string): number {
  const size = wholeNumber(text.replace(/^-(?=[1-9])/, ""));
  if (size !== undefined && size <= 100) return text.startsWith("-") ? -size : size;
  throw usageError(`--priority takes a whole number from -100 to 100, not ${JSON.stringify(text)}.`);
}

function oneOf<Word extends string>(option: string, words: readonly Word[], text: string | undefined): Word | undefined {
  if (text === undefined) return undefined;
  const found = words.find((word) => word === text);
  if (found === undefined) throw usageError(`${option} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
  return found;
}

/** Its schema and its parser are loaded only when there is a file to read. */
async function readInput(file: string, cwd: string): Promise<Pick<Input, "project" | "git" | "cwd"> & { attempts?: Attempts | undefined }> {
  const [{ parseConfig }, { ExperimentInput }] = await Promise.all([
    import("../../base/config/project-config.ts"),
    import("../../base/schema/experiment.ts"),
  ]);
  const path = file === "-" ? "standard input" : resolve(cwd, file);
  return parseConfig(path, readText(file, path), ExperimentInput.partial({ project: true, attempts: true }));
}

function readText(file: string, path: string): string {
  try {
    return readFileSync(file === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new VivError("usage", `${path} can't be read: ${error instanceof Error ? error.message : String(error)}.`, { cause: error });
  }
}
