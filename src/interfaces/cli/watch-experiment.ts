/** Follows an experiment to its end: progress, ctrl-C, the comparison, a person's choice, and the exit code. */
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Attempt, Experiment } from "../../base/schema/experiment.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { OWN_PROCESS, type Caller } from "./caller.ts";
import type { Invocation } from "./command.ts";
import { attemptLabel, byRank, nextSteps, printChoice, printTable } from "./experiment-table.ts";
import { follow } from "./follow.ts";
import { Progress } from "./progress.ts";
import { shortId } from "./references.ts";
import type { Screen } from "./screen.ts";
import { fields } from "./table.ts";
import { clean } from "./text.ts";

export const CANCELLED = 130;
const NO_WINNER = 1;
const MOST_INTERRUPTS = 2;
const INTERRUPT = 0x03;
/** For a program, an experiment that waits for a person is over: nothing more happens by itself. */
const OVER: ReadonlySet<Experiment["state"]> = new Set(["choosing", "done", "failed", "cancelled"]);

export interface WatchContext {
  readonly client: Client;
  readonly screen: Screen;
  readonly env: Invocation["env"];
  /** This process if left out. */
  readonly caller?: Caller;
}

/** Counts interrupts: one asks to stop cleanly, the next to kill, one more to leave. Before there is something to stop, they are kept. */
export class Interrupts {
  readonly #caller: Caller;
  #count = 0;
  #act: ((count: number) => void) | undefined;
  readonly interrupt = (): void => {
    this.#count += 1;
    this.#act?.(this.#count);
  };

  constructor(caller = OWN_PROCESS) {
    this.#caller = caller;
    for (const name of ["SIGINT", "SIGTERM"] as const) caller.on(name, this.interrupt);
  }

  get happened(): boolean {
    return this.#count > 0;
  }

  /** Whether nothing more is to be waited for. */
  get leaves(): boolean {
    return this.#count > MOST_INTERRUPTS;
  }

  act(action: (count: number) => void): void {
    this.#act = action;
    if (this.#count > 0) action(this.#count);
  }

  end(): void {
    for (const name of ["SIGINT", "SIGTERM"] as const) this.#caller.off(name, this.interrupt);
  }
}

function isAbout(id: string): (event: VivEvent) => boolean {
  return ({ type, data }) => type.startsWith("experiment.") && (data["experiment"] === undefined || data["experiment"] === id);
}

/** Its last state. A signal ends the watching, not the experiment. */
export async function watchExperiment(
  around: WatchContext,
  first: Experiment,
  progress: Progress,
  signal?: AbortSignal,
): Promise<Experiment> {
  let last = first;
  progress.update(first);
  const states = follow(
    { ...around, say: (line) => progress.say(line) },
    {
      look: () => around.client.call("inspectExperiment", { experiment: first.id }),
      concerns: isAbout(first.id),
      isStep: ({ type }) => type === "experiment.attempt",
      isOver: ({ state }) => OVER.has(state),
      ...(signal === undefined ? {} : { signal }),
    },
  );
  try {
    for await (const state of states) {
      last = state;
      progress.update(state);
    }
  } finally {
    progress.end();
  }
  return last;
}

/** Follows to the end, or until its caller leaves or has gone; interrupts cancel the experiment, and what was done is kept. */
export async function runToEnd(around: WatchContext, interrupts: Interrupts, first: Experiment): Promise<Experiment> {
  const progress = new Progress(around.screen);
  const listening = new AbortController();
  const leave = (): void => listening.abort();
  around.caller?.gone?.addEventListener("abort", leave, { once: true });
  interrupts.act((count) => {
    if (interrupts.leaves) return leave();
    progress.say(count === 1 ? "viv: stopping; what was done is kept. Ctrl-C again kills." : "viv: killing what still runs.");
    around.client
      .call("cancelExperiment", { experiment: first.id, now: count > 1 })
      // One that ended in the meantime can't be cancelled any more, and that is fine.
      .catch((error: unknown) => progress.say(`viv: ${clean(VivError.from(error).message)}`));
  });
  let endAnswering: (() => void) | undefined;
  const heard = tellRuns(around, first, progress, listening.signal);
  try {
    endAnswering = await answerMeanwhile(around, first.id, progress, interrupts);
    return await watchExperiment(around, first, progress, listening.signal);
  } finally {
    listening.abort();
    around.caller?.gone?.removeEventListener("abort", leave);
    await heard;
    progress.end();
    endAnswering?.();
  }
}

/** What its agents do, as they do it; the name before each line where there are several. */
async function tellRuns(
  { client, screen }: WatchContext,
  { attempts }: Experiment,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const tell = async ({ run, name }: Attempt): Promise<void> => {
    if (run == null) return;
    const { runLine } = await import("./run-lines.ts");
    for await (const event of client.runEvents(run, 0, signal)) {
      const line = runLine(event, screen);
      if (line !== undefined) progress.say(attempts.length === 1 ? line : `${clean(name)}: ${line}`);
    }
  };
  // The experiment goes on, and tells of its end, also where what its agents say can't be heard.
  await Promise.all(attempts.map((attempt) => tell(attempt).catch(() => undefined)));
}

/** Questions of its attempts are answered where it is watched. Keys go to the questions alone; an interrupt stays one. */
async function answerMeanwhile(around: WatchContext, experiment: string, progress: Progress, interrupts: Interrupts): Promise<() => void> {
  const { client, caller: { stdin } = OWN_PROCESS } = around;
  const attempts = async (): Promise<ReadonlySet<string>> => {
    const { sandboxes } = await client.call("listSandboxes", {});
    return new Set(sandboxes.filter(({ labels }) => labels["experiment"] === experiment).map(({ id }) => id));
  };
  if (stdin.isTTY !== true) return () => undefined;
  const { askInline } = await import("./run-inside.ts");
  const questions = await askInline({ ...around, say: (line) => progress.say(line), stage: progress }, attempts);
  if (questions === undefined) return () => undefined;
  const hear = (typed: Buffer): void => {
    if (questions.pass(typed).includes(INTERRUPT)) interrupts.interrupt();
  };
  stdin.setRawMode?.(true);
  stdin.on("data", hear);
  return () => {
    questions.end();
    stdin.off("data", hear).pause();
    stdin.setRawMode?.(false);
  };
}

export function exitCode(experiment: Experiment): number {
  if (experiment.state === "cancelled") return CANCELLED;
  if (experiment.winner !== null) return 0;
  const allRan = experiment.state === "done" && experiment.attempts.every((attempt) => attempt.exitCode !== null);
  return experiment.pick === "none" && allRan ? 0 : NO_WINNER;
}

/** Asks until the answer is an attempt; an empty one chooses none. */
export async function askWinner(experiment: Experiment, { stdin, stderr }: Caller): Promise<number | undefined> {
  const { createInterface } = await import("node:readline/promises");
  const prompt = createInterface({ input: stdin, output: stderr });
  // Interrupts at the prompt are the prompt's: they choose none.
  const stop = new AbortController();
  prompt.once("SIGINT", () => stop.abort());
  prompt.once("close", () => stop.abort());
  const choices = experiment.attempts.toSorted(byRank).map((attempt) => clean(attemptLabel(attempt)));
  const question = `Which one wins? ${choices.join(", ")}; nothing for none: `;
  try {
    for (;;) {
      const answer = (await prompt.question(question, { signal: stop.signal })).trim();
      if (answer === "") return undefined;
      const named = experiment.attempts.find(({ name, index }) => name === answer || String(index) === answer);
      if (named !== undefined) return named.index;
      stderr.write(`There is no attempt ${JSON.stringify(answer)}.\n`);
    }
  } catch (error) {
    if (stop.signal.aborted) return undefined;
    throw error;
  } finally {
    prompt.close();
  }
}

/** The comparison, and what to do next. */
export async function report(around: WatchContext, experiment: Experiment): Promise<void> {
  const names = namesOf(around);
  printTable(around.screen, experiment);
  await reportChoice(around, experiment, names);
}

/** Of sandboxes, by id. */
async function namesOf({ client }: Pick<WatchContext, "client">): Promise<ReadonlyMap<string, string>> {
  const { sandboxes } = await client.call("listSandboxes", {});
  return new Map(sandboxes.map(({ id, name }) => [id, name]));
}

/** The choice alone, and what to do next. */
export async function reportChoice({ screen, client }: WatchContext, experiment: Experiment, names = namesOf({ client })): Promise<void> {
  names.catch(() => undefined);
  printChoice(screen, experiment);
  if (experiment.state === "choosing") return;
  const steps = nextSteps(experiment, await names);
  if (steps.length === 0) return;
  screen.say("");
  for (const line of fields(steps.map(([words, what]) => [`  ${clean(words)}`, screen.paintRemark("dim", `# ${clean(what)}`)]))) {
    screen.say(line);
  }
}

/** "exp1a2b3c: 3 attempts at ..., judged by `npm test`." */
export function heading(experiment: Experiment): string {
  const judged =
    experiment.checks.length === 0
      ? "without checks, so nothing judges them"
      : `judged by ${experiment.checks.map((check) => `\`${check}\``).join(", ")}`;
  const count = experiment.attempts.length;
  return clean(
    `${shortId(experiment.id)}: ${count === 1 ? "one attempt" : `${count} attempts`} on ${experiment.git ?? experiment.project}, ${judged}.`,
  );
}
