import type { BacklogTask } from "../../../base/schema/backlog.ts";
import type { Run } from "../../../base/schema/run.ts";
import { command } from "../command.ts";
import { printHits } from "../conversation-lines.ts";
import { LISTING_OPTIONS, listingInput } from "../listing.ts";
import { findId, shortId } from "../references.ts";
import type { Screen } from "../screen.ts";
import { ago, until } from "../text.ts";

function paintState(screen: Screen, cell: string, { state }: Run): string {
  if (state === "completed") return screen.paint("green", cell);
  return screen.paint(state === "failed" ? "red" : "yellow", cell);
}

const ACTIVITY: Partial<Record<Run["activity"], string>> = { rate_limit: "waits for a rate limit", person: "waits for a person" };

/** What it is busy with while it runs, how it ended afterwards. */
export function stateText({ state, outcome, activity, activityUntil, health }: Run, now: number = Date.now()): string {
  if (outcome !== null && state !== "completing") return outcome === "done" ? state : outcome;
  if (state !== "running") return state;
  if (health === "degraded") return "degraded";
  const end = activityUntil === null ? "" : `, which ends ${until(activityUntil, now)}`;
  return `running, ${ACTIVITY[activity] ?? activity}${end}`;
}

export default command({
  name: "tasks",
  summary: "List what agents were given to do, and what they left for later",
  details:
    "Below the tasks stands the backlog: what agents found worth doing beside their task (`create_task`). The newest comes first. The text of a task is an agent's: read it before you give it to an agent. --done takes one off the backlog.",
  examples: [
    ["viv tasks", "the latest ones"],
    ["viv tasks --search 'login fails'", "where was that?"],
    ["viv tasks --done tsk4d5e6f", "that is done, or not worth doing"],
    ["viv tasks --all --json", "all of them, for programs"],
  ],
  options: {
    ...LISTING_OPTIONS,
    search: { type: "text", value: "WORDS", summary: "What was said and done in tasks that fits these words, the best first" },
    done: { type: "text", value: "TASK", summary: "Take this task off the backlog" },
  },
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const server = await client();
    if (options.search !== undefined) {
      const { project } = listingInput(options, cwd);
      const found = await server.call("searchConversations", { query: options.search, ...(project === undefined ? {} : { project }) });
      if (json) return screen.json(found);
      return found.hits.length === 0 ? screen.say("No record fits.") : printHits(screen, found.hits);
    }
    if (options.done !== undefined) {
      const task = await findId(server, "task", options.done);
      await server.call("removeBacklogTask", { task });
      return json ? screen.json({ id: task }) : screen.say(`${shortId(task)} is off the backlog.`);
    }
    const asked = listingInput(options, cwd);
    const { project } = asked;
    const [{ runs }, { tasks }] = await Promise.all([
      server.call("listRuns", asked),
      server.call("listBacklog", project === undefined ? {} : { project }),
    ]);
    if (json) return screen.json({ runs, backlog: tasks });
    if (options.quiet) {
      for (const { id } of runs) screen.print(id);
      return;
    }
    if (runs.length === 0 && tasks.length === 0) return screen.say("No tasks. Give an agent one with `viv task`.");
    if (runs.length > 0) printRuns(screen, runs);
    if (tasks.length > 0) printBacklog(screen, options.all ? tasks : tasks.slice(0, SHOWN), tasks.length);
  },
});

function printRuns(screen: Screen, runs: readonly Run[]): void {
  const several = new Set(runs.map((each) => each.project)).size > 1;
  screen.table(runs, [
    { title: "ID", value: ({ id }) => shortId(id) },
    { title: "WHEN", value: ({ createdAt }) => ago(createdAt) },
    ...(several ? [{ title: "PROJECT", value: (each: Run) => each.project, shrinks: true }] : []),
    { title: "AGENT", value: ({ agent }) => agent },
    { title: "STATE", value: (each) => stateText(each), paint: (cell, each) => paintState(screen, cell, each) },
    { title: "STEPS", value: ({ steps }) => String(steps), right: true },
    { title: "COST", value: ({ cost }) => `$${cost.toFixed(cost < 1 ? 4 : 2)}`, right: true },
    { title: "TASK", value: ({ task }) => task.split("\n", 1)[0] ?? "", shrinks: true },
  ]);
}

const SHOWN = 20;

function printBacklog(screen: Screen, tasks: readonly BacklogTask[], all: number): void {
  screen.print(`\nLeft for later by agents${tasks.length < all ? ` (${tasks.length} of ${all}, see --all)` : ""}:`);
  screen.table(tasks, [
    { title: "ID", value: ({ id }) => shortId(id) },
    { title: "WHEN", value: ({ createdAt }) => ago(createdAt) },
    { title: "PRIORITY", value: ({ priority }) => priority },
    { title: "BY", value: ({ sandboxName }) => sandboxName },
    { title: "TASK", value: ({ title }) => title, shrinks: true },
  ]);
}
