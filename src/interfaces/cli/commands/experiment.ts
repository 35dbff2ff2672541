import type { Client } from "../../client/client.ts";
import type { Experiment } from "../../../base/schema/experiment.ts";
import { command, type Invocation } from "../command.ts";
import { printAttempt, printChoice, printHead, printTable } from "../experiment-table.ts";
import { Progress } from "../progress.ts";
import { findId } from "../references.ts";
import { usageError } from "../values.ts";
import { CANCELLED, exitCode, heading, Interrupts, report, reportChoice, runToEnd, watchExperiment } from "../watch-experiment.ts";

const ACTIONS = ["show", "cancel", "retry", "pick", "rm"] as const;
type Action = (typeof ACTIONS)[number];

const options = {
  follow: { type: "flag", short: "f", summary: "show: watch it until it is over; ctrl-C ends the watching alone" },
  now: { type: "flag", summary: "cancel: kill instead of stopping cleanly" },
  all: { type: "flag", short: "a", summary: "retry: run attempts again that ended well, too" },
  detach: { type: "flag", short: "d", summary: "retry: leave it running" },
} as const;
type Call = Invocation<typeof options> & { readonly server: Client; readonly id: string; readonly attempt: string | undefined };

/** Which action an option is for. */
const BELONGS = { follow: "show", now: "cancel", all: "retry", detach: "retry" } as const satisfies Record<keyof typeof options, Action>;

async function show({ options: chosen, json, screen, env, server, id, attempt }: Call): Promise<number> {
  let experiment = await server.call("inspectExperiment", { experiment: id });
  if (chosen.follow) experiment = await watch({ client: server, screen, env }, experiment);
  if (json) {
    screen.json(experiment);
    return 0;
  }
  const chosenOnes = attempt === undefined ? experiment.attempts : [findAttempt(experiment, attempt)];
  if (attempt === undefined) {
    printHead(screen, experiment);
    printTable(screen, experiment);
    printChoice(screen, experiment);
  }
  for (const each of chosenOnes) printAttempt(screen, each);
  return 0;
}

async function watch(around: { client: Client; screen: Call["screen"]; env: Call["env"] }, experiment: Experiment): Promise<Experiment> {
  const interrupts = new Interrupts();
  const stop = new AbortController();
  interrupts.act(() => stop.abort());
  try {
    return await watchExperiment(around, experiment, new Progress(around.screen), stop.signal);
  } finally {
    interrupts.end();
  }
}

function findAttempt(experiment: Experiment, text: string): Experiment["attempts"][number] {
  const found = experiment.attempts.find(({ name, index }) => name === text || String(index) === text);
  if (found === undefined)
    throw usageError(
      `There is no attempt ${JSON.stringify(text)}.`,
      `There are ${experiment.attempts.map(({ name }) => name).join(", ")}.`,
    );
  return found;
}

async function retry({ options: chosen, json, screen, env, server, id }: Call): Promise<number> {
  const interrupts = new Interrupts();
  try {
    const started = await server.call("retryExperiment", { experiment: id, all: chosen.all });
    if (chosen.detach) {
      if (json) screen.json(started);
      else screen.print(heading(started));
      return 0;
    }
    screen.say(heading(started));
    const around = { client: server, screen, env };
    const experiment = await runToEnd(around, interrupts, started);
    if (interrupts.leaves) return CANCELLED;
    if (json) screen.json(experiment);
    else await report(around, experiment);
    return interrupts.happened ? CANCELLED : exitCode(experiment);
  } finally {
    interrupts.end();
  }
}

async function cancel({ options: chosen, json, screen, server, id }: Call): Promise<number> {
  const experiment = await screen.during("Stopping", server.call("cancelExperiment", { experiment: id, now: chosen.now }));
  if (json) screen.json(experiment);
  else screen.print(`${id} is ${experiment.state}. What was done is kept: viv experiment ${id}`);
  return 0;
}

async function pick({ json, screen, env, server, id, attempt }: Call): Promise<number> {
  if (attempt === undefined) throw usageError("Which one wins? Say its name or number.", "Usage: viv experiment ID pick ATTEMPT");
  const { index } = findAttempt(await server.call("inspectExperiment", { experiment: id }), attempt);
  const experiment = await server.call("pickWinner", { experiment: id, attempt: index });
  if (json) screen.json(experiment);
  else await reportChoice({ client: server, screen, env }, experiment);
  return 0;
}

async function remove({ json, screen, server, id }: Call): Promise<number> {
  await screen.during("Removing", server.call("removeExperiment", { experiment: id }));
  if (json) screen.json({ removed: [id] });
  else screen.print(id);
  return 0;
}

const WAYS: Readonly<Record<Action, (call: Call) => Promise<number>>> = { show, cancel, retry, pick, rm: remove };

async function run(invocation: Invocation<typeof options>): Promise<number> {
  const [text = "", word = "show", attempt] = invocation.positionals;
  const action = ACTIONS.find((each) => each === word);
  if (action === undefined) throw usageError(`An experiment can't ${JSON.stringify(word)}.`, `It can ${ACTIONS.join(", ")}.`);
  for (const [option, belongs] of Object.entries(BELONGS)) {
    if (invocation.options[option as keyof typeof options] && belongs !== action)
      throw usageError(`--${option} goes with ${belongs}, not with ${action}.`);
  }
  if (attempt !== undefined && action !== "pick" && action !== "show")
    throw usageError(`${action} is for the whole experiment; it takes no attempt.`);
  const server = await invocation.client();
  return WAYS[action]({ ...invocation, server, id: await findId(server, "experiment", text), attempt });
}

export default command({
  name: "experiment",
  summary: "Show, cancel, run again, decide or remove an experiment",
  details:
    "show (the default) compares the attempts and shows the end of each output; cancel stops what runs and keeps what was done; retry runs attempts again that failed or were cancelled; pick chooses the winner; rm removes it with its sandboxes.",
  examples: [
    ["viv experiment exp1a2b3c", "all about it; the beginning of its id is enough"],
    ["viv experiment exp1a2b3c show patch", "one attempt alone"],
    ["viv experiment exp1a2b3c --follow", "watch one that runs in the background"],
    ["viv experiment exp1a2b3c pick 2", "choose the second attempt yourself"],
  ],
  options,
  positionals: [
    { name: "ID", summary: "Its id, or enough of its beginning", completes: "experiment" },
    { name: "ACTION", summary: `${ACTIONS.join(", ")}; show if left out`, optional: true, completes: ACTIONS },
    { name: "ATTEMPT", summary: "pick and show: name or number of an attempt", optional: true, completes: "attempt" },
  ],
  run,
});
