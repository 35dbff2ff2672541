/** Use cases of jobs. */
import type { Jobs } from "../../work/jobs/jobs.ts";
import type { Handlers } from "./operations.ts";

type Own = "scheduleJob" | "jobStatus" | "listJobs" | "inspectJob" | "cancelJob";

export function jobHandlers(jobs: Jobs): Pick<Handlers, Own> {
  return {
    scheduleJob: (input) => jobs.schedule(input),
    jobStatus: ({ job_id }) => jobs.status(job_id),
    listJobs: async (filter) => ({ jobs: await jobs.list(filter) }),
    inspectJob: ({ job }) => jobs.inspect(job),
    cancelJob: ({ job }) => jobs.cancel(job),
  };
}
