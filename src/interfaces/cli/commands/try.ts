import type { Experiment } from "../../../base/schema/experiment.ts";
import type { Client } from "../../client/client.ts";
import type { Caller } from "../caller.ts";
import { command, type Invocation } from "../command.ts";
import { serverIsBack } from "../follow.ts";
import { findId, findStart, shortId } from "../references.ts";
import { TRY_OPTIONS, tryInput } from "../try-input.ts";
import { usageError } from "../values.ts";
import {
  askWinner,
  CANCELLED,
  exitCode,
  heading,
  Interrupts,
  report,
  reportChoice,
  runToEnd,
  type WatchContext,
} from "../watch-experiment.ts";
import { promotionExit, waitForPromotion } from "../promote-run.ts";
import { printSettled } from "../promotion-view.ts";

const NOT_PROMOTED = 1;

async function run(invocation: Invocation<typeof TRY_OPTIONS>): Promise<number> {
  const { options, rest, json, screen, env, caller } = invocation;
  if (options.agent === undefined && looksUnquoted(rest))
    screen.say(`Each word is an approach of its own here; a line with spaces is quoted: viv try '${rest.join(" ")}'.`);
  const canAsk = !json && !options.detach && caller.stdin.isTTY === true && caller.stderr.isTTY === true;
  const interrupts = new Interrupts(caller);
  try {
    const { client, started, promote } =
      options.resume === undefined ? await start(invocation, canAsk) : await resume(invocation, options.resume);
    if (options.detach) {
      if (json) screen.json(started);
      else if (!screen.terminal) screen.print(started.id);
      else screen.print(`${heading(started)}\nFollow it with: viv experiment ${shortId(started.id)} --follow`);
      return 0;
    }
    const around = { client, screen, env, caller };
    caller.goesOnWith?.(["try", "--resume", started.id, ...(promote ? ["--promote"] : []), ...(json ? ["--json"] : [])]);
    screen.say(heading(started));
    const ended = await runToEnd(around, interrupts, started);
    interrupts.end();
    if (interrupts.leaves || caller.gone?.aborted === true) return CANCELLED;
    caller.goesOnWith?.([]);
    const asking = ended.state === "choosing" && canAsk && !interrupts.happened;
    if (!json) await report(around, ended);
    const experiment = asking ? await choose(around, ended) : ended;
    const promotion = experiment.promotion === null ? undefined : await waitForPromotion(around, experiment.promotion);
    if (json) screen.json(experiment);
    else if (promotion !== undefined) printSettled(screen, promotion);
    if (interrupts.happened) return CANCELLED;
    if (promotion !== undefined) return promotionExit(promotion);
    // If the winner should be promoted and was not, the command has failed.
    return exitCode(experiment) || (promote ? NOT_PROMOTED : 0);
  } finally {
    interrupts.end();
  }
}

interface Started {
  readonly client: Client;
  readonly started: Experiment;
  readonly promote: boolean;
}

async function start(
  { options, rest, screen, cwd, env, client: connect }: Invocation<typeof TRY_OPTIONS>,
  canAsk: boolean,
): Promise<Started> {
  const input = await tryInput(options, rest, { cwd, env });
  if (input.pick === "ask" && !canAsk)
    throw usageError(
      "--pick ask needs a terminal to ask on.",
      "Use --pick auto, or --pick none and choose later with `viv experiment ID pick NAME`.",
    );
  const client = await connect();
  if (options.from !== undefined) input.from = await findStart(client, options.from);
  return { client, started: await screen.during("Starting", client.call("startExperiment", input)), promote: input.promote === true };
}

/** As if this command had started it. */
async function resume({ options, rest, screen, env, client: connect }: Invocation<typeof TRY_OPTIONS>, text: string): Promise<Started> {
  if (rest.length > 0 || options.attempt.length > 0)
    throw usageError("--resume takes no approaches: the experiment has its own.", "Leave them out, or start a new one without --resume.");
  await serverIsBack({ screen, env, say: (line) => screen.say(line) });
  const client = await connect();
  const experiment = await findId(client, "experiment", text);
  return { client, started: await client.call("inspectExperiment", { experiment }), promote: options.promote };
}

async function choose(around: WatchContext & { readonly caller: Caller }, experiment: Experiment): Promise<Experiment> {
  const attempt = await askWinner(experiment, around.caller);
  if (attempt === undefined) {
    around.screen.say(`\nNone is chosen. Choose later with: viv experiment ${shortId(experiment.id)} pick NAME`);
    return experiment;
  }
  const chosen = await around.client.call("pickWinner", { experiment: experiment.id, attempt });
  await reportChoice(around, chosen);
  return chosen;
}

/** Words of one line, as a newcomer types them. */
function looksUnquoted(lines: readonly string[]): boolean {
  return lines.length > 1 && lines.every((line) => !/\s/.test(line));
}

export default command({
  name: "try",
  summary: "Try several approaches at once, each in its own clone, and compare them",
  details:
    "Each COMMAND is a line for the shell and runs in a clone of the project as it is now; nothing of it reaches the real project. The checks then judge each attempt in a fresh fork of its clone, and the unchanged project, too (the baseline). An attempt can win if its command ended with 0, it changed something, and all checks pass, also in a fresh clone with its change alone; among several the rules decide. The exit code is 0 with a winner, or with --pick none when all ran, else 1. Ctrl-C stops cleanly and keeps what was done; a second one kills. With --json the experiment is printed as one object when it is over.",
  examples: [
    ["viv try 'npm update' './fix.sh' 'git revert --no-edit HEAD' --check 'npm test'", "which of the three makes the tests pass?"],
    [
      "viv try -a patch='git apply fix.patch' -a revert='git revert --no-edit HEAD' -c 'make test' --promote",
      "with names, and the winner into the project",
    ],
    ["viv try 'sed -i s/-O1/-O2/ Makefile' 'sed -i s/-O1/-O3/ Makefile' --check make --measure ./bench.sh", "which is faster?"],
    ["viv try 'Fix the failing test' --agent claude,codex --check 'npm test'", "two agents at the same task"],
    ["viv try -f attempts.json --detach", "from a file, in the background"],
  ],
  options: TRY_OPTIONS,
  positionals: [{ name: "COMMAND", summary: "A line for the shell, quoted as one word; one per approach", optional: true, rest: "values" }],
  run,
});
