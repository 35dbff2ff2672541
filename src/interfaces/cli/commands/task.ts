import { resolve } from "node:path";
import type { Client } from "../../client/client.ts";
import { COMPANION_ROLES, GUARDIAN_MODES, RATE_LIMIT_MODES } from "../../../base/schema/choices.ts";
import type { InputOf } from "../../../base/schema/contracts.ts";
import type { Experiment } from "../../../base/schema/experiment.ts";
import type { Run } from "../../../base/schema/run.ts";
import { command, type Invocation, type OptionDeclarations } from "../command.ts";
import { companions, WITH_SUMMARY } from "../companions.ts";
import { definedOnly } from "../defined-only.ts";
import { autonomy, AUTONOMY_OPTIONS, oneOf } from "../policy-options.ts";
import { promotionExit, waitForPromotion } from "../promote-run.ts";
import { printSettled } from "../promotion-view.ts";
import { findStart, shortId } from "../references.ts";
import { usageError } from "../values.ts";
import { repository, REPOSITORY_OPTIONS } from "../starting-point.ts";
import { CANCELLED, Interrupts, report, runToEnd, type WatchContext } from "../watch-experiment.ts";
import { isWithin } from "../within.ts";
import { clean } from "../text.ts";

const OPTIONS = {
  agent: { type: "text", value: "AGENT", summary: "Who does it; claude if left out, see `viv agents`" },
  model: { type: "text", value: "MODEL", summary: "Model of the agent; its own choice if left out" },
  with: { type: "list", value: "ROLE", completes: COMPANION_ROLES, summary: WITH_SUMMARY },
  check: { type: "list", short: "c", value: "COMMAND", summary: "Proves the result by its exit code; those of the config if left out" },
  setup: { type: "text", value: "COMMAND", summary: "Prepares a fresh clone before its checks, such as `npm ci`" },
  ...AUTONOMY_OPTIONS,
  budget: { type: "number", value: "USD", summary: "Dollars that it may spend on models" },
  timeout: { type: "duration", value: "TIME", summary: "Time it has, such as 90s or 2h; 30m if left out" },
  steps: { type: "integer", value: "N", summary: "Tool calls that it may make" },
  guardian: {
    type: "text",
    completes: GUARDIAN_MODES,
    value: "MODE",
    summary: "Who watches it: full steps in, warn only tells, off; full if left out",
  },
  "rate-limit": {
    type: "text",
    completes: RATE_LIMIT_MODES,
    value: "MODE",
    summary: "At a rate limit of its model API: wait for its end and go on, or stop with the work kept; wait if left out",
  },
  snapshots: { type: "flag", summary: "Take a snapshot before each turn, too, for `viv rollback`" },
  from: {
    type: "text",
    value: "RUN",
    completes: "sandbox",
    summary: "Take over this run, its files and its conversation; or begin as a sandbox or a snapshot is, instead of as the project is",
  },
  context: { type: "integer", value: "N", summary: "With --from RUN: tokens of its conversation that the agent gets; 8000 if left out" },
  detach: { type: "flag", short: "d", summary: "Print the id and leave it running" },
  promote: { type: "flag", summary: "Bring the result into the project if its checks pass" },
  branch: { type: "flag", short: "b", summary: "As --promote, but make a branch with one commit instead of writing into the folder" },
  push: { type: "text", value: "REMOTE", summary: "With --branch: push it to this remote, never forced" },
  pr: { type: "flag", summary: "With --branch: push it, to origin if --push names no other remote, and open a pull request" },
  project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "A folder in the project; the current one if left out" },
  ...REPOSITORY_OPTIONS,
  empty: { type: "flag", summary: "Start from an empty workspace on a read-only system, as user 1000" },
  cpus: { type: "number", value: "N", summary: "CPU cores of its sandbox" },
  memory: { type: "size", value: "SIZE", summary: "Memory of its sandbox, such as 512m or 4g" },
} as const satisfies OptionDeclarations;
const SETTLING_MS = 10_000;
type Options = Invocation<typeof OPTIONS>["options"];

/** A branch is a way to promote. */
function promotes({ promote, branch }: Options): boolean {
  return promote || branch;
}

function branchInput({ branch, push, pr }: Options): Pick<InputOf<"startExperiment">, "branch"> {
  const first = branch ? undefined : push === undefined ? (pr ? "--pr" : undefined) : "--push";
  if (first !== undefined) throw usageError(`${first} goes with --branch.`);
  return branch ? { branch: { ...(push === undefined ? {} : { push }), ...(pr ? { pullRequest: true } : {}) } } : {};
}

function input(options: Options, task: string, { cwd, env }: Pick<Invocation, "cwd" | "env">): InputOf<"startExperiment"> {
  const { level, yolo, role } = options;
  return {
    ...startInput(options, cwd),
    attempts: [
      {
        agent: {
          task,
          ...(options.agent === undefined ? {} : { agent: options.agent }),
          ...(options.model === undefined ? {} : { model: options.model }),
          ...companions(options.with),
          ...(options.steps === undefined ? {} : { steps: options.steps }),
          ...(options.guardian === undefined ? {} : { guardian: oneOf("--guardian", GUARDIAN_MODES, options.guardian) }),
          ...(options["rate-limit"] === undefined ? {} : { rateLimit: oneOf("--rate-limit", RATE_LIMIT_MODES, options["rate-limit"]) }),
          ...(options.snapshots ? { snapshots: true } : {}),
          ...(options.budget === undefined ? {} : { budget: options.budget }),
          ...(options.context === undefined ? {} : { contextTokens: options.context }),
        },
      },
    ],
    ...(options.check.length === 0 ? {} : { checks: [...options.check] }),
    ...(options.setup === undefined ? {} : { setup: options.setup }),
    ...autonomy({ level, yolo, role }),
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(promotes(options) ? { promote: true } : {}),
    ...branchInput(options),
    ...limitsInput(options),
    env: definedOnly(env),
  };
}

/** What it begins from: the project of the caller's folder, unless the options name another start. */
function startInput(options: Options, cwd: string): Pick<InputOf<"startExperiment">, "project" | "git" | "empty" | "from" | "cwd"> {
  const { empty, from } = options;
  const git = repository(options);
  const named = Object.entries({ project: options.project, git, empty: empty || undefined, from }).filter(
    ([, value]) => value !== undefined,
  );
  const [first, second] = named.map(([name]) => `--${name}`).filter((name, _, all) => name !== "--project" || !all.includes("--from"));
  if (second !== undefined) throw usageError(`${first ?? ""} and ${second} exclude each other.`, "A task begins from one of them.");
  if (git !== undefined) return { git };
  if (empty) return { empty };
  const project = options.project === undefined ? cwd : resolve(cwd, options.project);
  return { project, ...(from === undefined ? {} : { from }), ...(isWithin(project, cwd) ? { cwd } : {}) };
}

function limitsInput({ cpus, memory }: Options): Pick<InputOf<"startExperiment">, "limits"> {
  if (cpus === undefined && memory === undefined) return {};
  return { limits: { ...(cpus === undefined ? {} : { cpus }), ...(memory === undefined ? {} : { memoryBytes: memory }) } };
}

/** What a program gets: the run, and what came of it. */
async function result(client: Client, experiment: Experiment): Promise<object> {
  const [attempt] = experiment.attempts;
  const { id, agent, state, outcome, reason, cost, sandbox } = await client.call("inspectRun", { run: attempt?.run ?? "" });
  const verdict = attempt?.verified ?? attempt?.checked ?? null;
  return {
    id,
    experiment: experiment.id,
    sandbox: attempt?.sandbox ?? sandbox,
    agent,
    state,
    outcome,
    reason,
    verdict: verdict === null || verdict.checks.length === 0 ? null : verdict.passed ? "passed" : "failed",
    cost,
    change: attempt?.diff ?? null,
    promotion: experiment.promotion,
  };
}

async function settled(client: Client, id: string): Promise<Run> {
  const { events } = await client.call("inspectRun", { run: id });
  // They end with the run, a moment after its experiment.
  for await (const event of client.runEvents(id, events, AbortSignal.timeout(SETTLING_MS))) void event;
  return client.call("inspectRun", { run: id });
}

/** The run has ended well: its agent is done, and no check failed. */
function exitOf({ outcome }: Run, experiment: Experiment): number {
  if (experiment.state === "cancelled") return CANCELLED;
  return outcome === "done" ? 0 : 1;
}

async function run({ options, positionals: [task = ""], json, screen, cwd, env, client }: Invocation<typeof OPTIONS>): Promise<number> {
  if (options.context !== undefined && options.from === undefined)
    throw usageError("--context goes with --from RUN.", "It says how much of that run's conversation the agent gets.");
  const asked = input(options, task, { cwd, env });
  const interrupts = new Interrupts();
  try {
    const around: WatchContext = { client: await client(), screen, env };
    if (options.from !== undefined) asked.from = await findStart(around.client, options.from);
    const started = await screen.during("Starting", around.client.call("startExperiment", asked));
    const id = started.attempts[0]?.run ?? "";
    if (options.detach) {
      if (json) screen.json({ id, experiment: started.id });
      else if (!screen.terminal) screen.print(id);
      else screen.print(`${shortId(id)}: ${clean(task)}\nFollow it with: viv experiment ${shortId(started.id)} --follow`);
      return 0;
    }
    screen.say(screen.paintRemark("dim", `${shortId(id)}; say something to it with: viv say ${shortId(id)} "..."`));
    const ended = await runToEnd(around, interrupts, started);
    if (interrupts.leaves) return CANCELLED;
    interrupts.end();
    const last = await settled(around.client, id);
    const promotion = ended.promotion === null ? undefined : await waitForPromotion(around, ended.promotion);
    if (json) screen.json(await result(around.client, ended));
    else {
      await report(around, ended);
      if (promotion !== undefined) printSettled(screen, promotion);
    }
    if (interrupts.happened) return CANCELLED;
    if (promotion !== undefined) return promotionExit(promotion);
    return exitOf(last, ended) || (promotes(options) ? 1 : 0);
  } finally {
    interrupts.end();
  }
}

export default command({
  name: "task",
  summary: "Give an agent a task in a clone of the project, and prove what it did",
  details:
    "The agent works by itself in a clone of the project as it is now; nothing of it reaches the real project. You see what it does, and can talk to it with `viv say`. When it has ended, the checks judge its result in a fresh fork of its clone, and the unchanged project, too (the baseline). The exit code is 0 if the agent is done and no check failed, else 1. Ctrl-C stops it and keeps what was done; a second one kills. With --json one object is printed when it is over: id, sandbox, agent, state, outcome, verdict, cost and change; nothing is asked.",
  examples: [
    ['viv task "Fix the failing test" --check "npm test"', "let Claude Code fix it, and see whether it did"],
    ['viv task "Fix the failing test" --check "npm test" --promote', "and bring it into the project if it did"],
    ['viv task "Fix the failing test" --check "npm test" --branch --pr', "as a branch with a pull request, if it did"],
    ['viv task "Update the docs" --agent codex --budget 2 --timeout 1h', "another agent, with bounds"],
    ['viv task "Implement user authentication" --with reviewer', "its agent can ask another one that reads the change"],
    ['viv task "Add a README" --git https://github.com/me/app.git --ref v2', "in a repository that is cloned inside"],
    ['viv task "Add tests" --level 1 --detach', "in the background; it asks before what the level asks about"],
    ['viv task "Go on, and fix the rest" --from run01h2x --agent codex', "another agent takes over: its files, and what was said and done"],
  ],
  options: OPTIONS,
  positionals: [{ name: "TASK", summary: "What the agent is to do, in plain words, quoted as one word" }],
  run,
});
