/** What `viv automation add` asks the server for, from options. */
import { resolve } from "node:path";
import { AUTHORITIES } from "../../base/schema/choices.ts";
import type { InputOf } from "../../base/schema/contracts.ts";
import type { OptionDeclarations, OptionValues } from "./command.ts";
import { usageError } from "./values.ts";

type Spec = InputOf<"addAutomation">["spec"];
type When = NonNullable<Spec["when"]>;

export const ADD_OPTIONS = {
  files: { type: "list", value: "PATTERN", summary: "Fire when files of the project change; * stands for any text" },
  cron: { type: "text", value: "LINE", summary: "Fire by the clock: minute, hour, day, month, weekday, such as '0 3 * * *'" },
  timezone: { type: "text", value: "ZONE", summary: "Time zone of --cron and --quiet, such as Europe/Berlin; the machine's if left out" },
  webhook: { type: "flag", summary: "Fire when a signed call comes; the secret is printed" },
  branch: { type: "text", value: "BRANCH", summary: "Fire when a branch has another commit" },
  remote: { type: "text", value: "REMOTE", summary: "With --branch: the branch of a remote, by its name or address" },
  fails: { type: "text", value: "COMMAND", summary: "Fire when a line begins to fail that is run in a clone from time to time" },
  log: { type: "text", value: "FILE", completes: "path", summary: "Fire when a line is written to a file" },
  line: { type: "text", value: "PATTERN", summary: "With --log: what the line has to be, such as '*ERROR*'" },
  every: { type: "duration", value: "TIME", summary: "How often --remote is asked (10m) and --fails is run (1h)" },
  task: { type: "text", value: "TEXT", summary: "What an agent is asked to do" },
  agent: { type: "text", value: "AGENT", summary: "The agent of --task; claude if left out" },
  model: { type: "text", value: "MODEL", summary: "Its model" },
  run: { type: "list", short: "r", value: "COMMAND", summary: "A line instead of a task; several are attempts of which the best is taken" },
  check: { type: "list", short: "c", value: "COMMAND", summary: "Verifies the change in a clone; those of vivarium.json if left out" },
  setup: { type: "text", value: "COMMAND", summary: "Prepares a fresh clone before its checks, such as `npm ci`" },
  reality: {
    type: "list",
    value: "COMMAND",
    summary: "Run on the real machine before and after a promotion, which is undone if it fails only after",
  },
  authority: {
    type: "text",
    value: "AUTHORITY",
    completes: AUTHORITIES,
    summary: `What it may do: ${AUTHORITIES.join(", ")}; propose-and-wait if left out`,
  },
  timeout: { type: "duration", value: "TIME", summary: "Time for one attempt; 10m if left out" },
  batch: { type: "duration", value: "TIME", summary: "What comes within this time is one firing; 2s if left out" },
  "budget-run": { type: "number", value: "DOLLARS", summary: "What one firing may spend on models" },
  "budget-night": { type: "number", value: "DOLLARS", summary: "What its firings may spend from noon to noon" },
  quiet: { type: "text", value: "FROM-TO", summary: "Hours in which it begins nothing, such as 08:00-18:00" },
  together: { type: "flag", summary: "It may work while another automation works on the project" },
  "dry-run": { type: "flag", summary: "It tries and verifies, and promotes nothing" },
  project: { type: "text", value: "PATH", completes: "path", summary: "The project; that of this folder if left out" },
} as const satisfies OptionDeclarations;

type Options = OptionValues<typeof ADD_OPTIONS>;

export function specOf(options: Options, cwd: string): Spec {
  const { task, agent, model, run, check, setup, reality, timeout, batch, together } = options;
  if (task === undefined && run.length === 0)
    throw usageError("Say what it does: --run 'npm update' for lines, or --task 'Make the tests pass' for an agent.");
  const budget = { run: options["budget-run"], night: options["budget-night"] };
  return {
    when: whenOf(options, cwd),
    task,
    agent,
    model,
    setup,
    timeout,
    batch,
    quiet: quietOf(options),
    ...(run.length === 0 ? {} : { run: [...run] }),
    ...(check.length === 0 ? {} : { checks: [...check] }),
    reality: [...reality],
    // The server knows which there are.
    ...(options.authority === undefined ? {} : { authority: options.authority as NonNullable<Spec["authority"]> }),
    budget,
    together,
    dryRun: options["dry-run"],
  };
}

function whenOf(options: Options, cwd: string): When | undefined {
  const { files, cron, timezone, webhook, branch, remote, fails, log, line, every } = options;
  const chosen = [files.length > 0, cron, webhook, branch, fails, log].filter((one) => one !== undefined && one !== false);
  if (chosen.length > 1) throw usageError("An automation waits for one trigger.", "Add another automation for the other one.");
  if (files.length > 0) return { on: "files", paths: [...files] };
  if (cron !== undefined) return { on: "schedule", cron, timezone };
  if (webhook) return { on: "webhook" };
  if (branch !== undefined) return { on: "commit", branch, remote, every };
  if (fails !== undefined) return { on: "check", command: fails, every };
  if (log === undefined) return undefined;
  if (line === undefined) throw usageError("--log needs --line.", "Say which lines it waits for, such as --line '*ERROR*'.");
  return { on: "log", file: resolve(cwd, log), line };
}

function quietOf({ quiet, timezone }: Options): Spec["quiet"] {
  if (quiet === undefined) return undefined;
  const [from = "", to = "", ...rest] = quiet.split("-");
  if (to === "" || rest.length > 0) throw usageError(`--quiet takes hours such as 08:00-18:00, not ${JSON.stringify(quiet)}.`);
  return { from, to, timezone };
}
