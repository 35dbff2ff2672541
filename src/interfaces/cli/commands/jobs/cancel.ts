import { command } from "../../command.ts";
import { findId } from "../../references.ts";
import { jobStateText } from "./list.ts";

export default command({
  name: "jobs cancel",
  summary: "End a job, or take it out of the queue",
  details: "A job that has ended already stays as it is.",
  examples: [["viv jobs cancel 9412aa3a", "it has failed then, and its stderr says why"]],
  options: {},
  positionals: [{ name: "JOB", summary: "Id of a job, or enough of its beginning", completes: "job" }],
  async run({ positionals: [reference = ""], json, screen, client }) {
    const server = await client();
    const job = await server.call("cancelJob", { job: await findId(server, "job", reference) });
    if (json) screen.json(job);
    else screen.print(`${job.id}: ${jobStateText(job)}`);
  },
});
