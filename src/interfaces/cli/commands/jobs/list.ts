import { resolve } from "node:path";
import { JOB_STATES } from "../../../../base/schema/choices.ts";
import type { Job } from "../../../../base/schema/job.ts";
import { command, type OptionDeclarations } from "../../command.ts";
import type { Screen } from "../../screen.ts";
import { ago, clean, duration } from "../../text.ts";

const OPTIONS = {
  state: { type: "text", short: "s", value: "STATE", completes: JOB_STATES, summary: `Only those that are ${JOB_STATES.join(", ")}` },
  project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "Only those of this project" },
  limit: { type: "integer", short: "n", value: "N", summary: "At most so many, the newest; 50 if left out" },
  quiet: { type: "flag", short: "q", summary: "Print ids only" },
} as const satisfies OptionDeclarations;

export function paintJobState(screen: Screen, cell: string, { state }: Job): string {
  if (state === "succeeded") return screen.paint("green", cell);
  return screen.paint(state === "failed" ? "red" : "yellow", cell);
}

/** "failed (1)", "failed (timeout)". */
export function jobStateText({ state, cause, exitCode, reason }: Job): string {
  if (state !== "failed") return state;
  if (cause !== null && cause !== "exit") return `${state} (${cause})`;
  return exitCode === null ? `${state}${reason === null ? "" : " (not run)"}` : `${state} (${exitCode})`;
}

function took({ startedAt, endedAt }: Job): string {
  return startedAt === null ? "-" : duration((endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt));
}

export default command({
  name: "jobs",
  summary: "List jobs: code that was given to be run",
  examples: [
    ["viv jobs", "the latest ones"],
    ["viv jobs --state running", "what runs now"],
    ["viv jobs --json", "for programs"],
  ],
  options: OPTIONS,
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const { jobs } = await (
      await client()
    ).call("listJobs", {
      // The server knows which states there are.
      ...(options.state === undefined ? {} : { state: options.state as Job["state"] }),
      ...(options.project === undefined ? {} : { project: resolve(cwd, options.project) }),
      ...(options.limit === undefined ? {} : { limit: options.limit }),
    });
    if (json) return screen.json({ jobs });
    if (options.quiet) {
      for (const { id } of jobs) screen.print(id);
      return;
    }
    if (jobs.length === 0) return screen.say("No jobs. Run some code with `viv code`.");
    const several = new Set(jobs.map(({ project }) => project)).size > 1;
    screen.table(jobs, [
      { title: "ID", value: ({ id }) => id.slice(0, 8) },
      { title: "WHEN", value: ({ createdAt }) => ago(createdAt) },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "STATE", value: jobStateText, paint: (cell, each) => paintJobState(screen, cell, each) },
      { title: "TOOK", value: took, right: true },
      ...(several ? [{ title: "PROJECT", value: (each: Job) => each.project ?? "-", shrinks: true }] : []),
      { title: "CODE", value: ({ title }) => clean(title), shrinks: true },
    ]);
  },
});
