import { command } from "../../command.ts";
import { findId } from "../../references.ts";
import type { Screen } from "../../screen.ts";
import { ago, clean, duration } from "../../text.ts";
import { jobStateText, paintJobState } from "./list.ts";

/** What it printed is a program's own: lines are shown, and what moves the cursor is not. */
function printText(screen: Screen, title: string, text: string): void {
  if (text === "") return;
  screen.print();
  screen.print(screen.paint("dim", title));
  for (const line of text.replace(/\n$/, "").split("\n")) screen.print(clean(line));
}

export default command({
  name: "jobs show",
  summary: "Show a job: its state, its code and what it printed",
  examples: [
    ["viv jobs show 9412aa3a", "enough of the id to tell it from others"],
    ["viv jobs show --json 9412aa3a", "the output as it is, for programs"],
  ],
  options: {},
  positionals: [{ name: "JOB", summary: "Id of a job, or enough of its beginning", completes: "job" }],
  async run({ positionals: [reference = ""], json, screen, client }) {
    const server = await client();
    const job = await server.call("inspectJob", { job: await findId(server, "job", reference) });
    if (json) return screen.json(job);
    const rows: readonly (readonly [string, string | null])[] = [
      ["id", job.id],
      ["state", paintJobState(screen, jobStateText(job), job)],
      ["reason", job.reason === null ? null : clean(job.reason)],
      ["kind", job.kind],
      ["project", job.project === null ? null : clean(job.project)],
      ["created", ago(job.createdAt)],
      ["time limit", duration(job.timeoutMs)],
      ["sandbox", job.sandbox === null || (job.endedAt !== null && !job.sandboxKept) ? null : job.sandbox],
    ];
    screen.fields(rows.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])));
    printText(screen, "code", job.code);
    printText(screen, "stdout", job.stdout);
    printText(screen, "stderr", job.stderr);
  },
});
