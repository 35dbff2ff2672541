/** Jobs as a program without our client asks for them: plain HTTP over the server's socket. */
import { request } from "node:http";
import type { Job, JobStatus, ScheduleInput } from "../../src/base/schema/job.ts";
import { eventually, type TestServer } from "./server.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly body: unknown;
}

export function http(server: TestServer, method: "GET" | "POST", path: string, body?: unknown): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { host: "localhost", "content-type": "application/json" };
    const asking = request({ socketPath: server.paths.socket, method, path, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(text) as unknown }));
    });
    asking.on("error", reject);
    asking.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

type Asked = Pick<ScheduleInput, "kind" | "code"> & Partial<ScheduleInput>;

export async function schedule(server: TestServer, input: Asked): Promise<string> {
  return (await server.client.call("scheduleJob", input)).job_id;
}

/** Waits for its end, which its stream of output tells. */
export async function ended(server: TestServer, job: string): Promise<Job> {
  for await (const part of server.client.jobOutput(job, AbortSignal.timeout(50_000))) if ("ended" in part) return part.ended;
  throw new Error(`job ${job} did not end`);
}

/** Runs a job to its end. */
export async function run(server: TestServer, input: Asked): Promise<JobStatus & { readonly job: Job }> {
  const job = await ended(server, await schedule(server, input));
  return { ...(await server.client.call("jobStatus", { job_id: job.id })), job };
}

/** Waits until a status is as it should be. */
export async function statusOf(server: TestServer, job: string, isRight: (status: JobStatus) => boolean): Promise<JobStatus> {
  return eventually(() => server.client.call("jobStatus", { job_id: job }), isRight, 20_000);
}

/** Sandboxes that are there now. */
export async function sandboxesOf(server: TestServer): Promise<string[]> {
  return (await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id);
}
