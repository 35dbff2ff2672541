/** Jobs: one from its request to its end, against a plain create, and many from several clients. Ends are heard by events, not asked for. */
import type { VivEvent } from "../src/base/schema/event.ts";
import { compare, pairCount, series, timed } from "./measure.ts";
import type { Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";

const JOB = { kind: "shell", code: "echo hello" } as const;
const PAIRS = 60;
const CLIENTS = 10;
const JOBS = 1000;

export const jobsGroup: Group = {
  keys: ["job_ms", "jobs_1000"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const outcomes: Partial<Record<Key, Measured>> = {};
      const ends = new JobEnds();
      const stop = new AbortController();
      const heard = ends.hear(await server.events(stop.signal));
      try {
        for (const [key, measure] of [
          ["job_ms", oneJob],
          ["jobs_1000", manyJobs],
        ] as const) {
          if (!settings.wanted.has(key)) continue;
          settings.progress(key);
          outcomes[key] = await measure(server, ends, settings);
        }
      } finally {
        stop.abort();
        await heard;
      }
      return outcomes;
    });
  },
};

/** How jobs ended, as the stream of events tells it. */
class JobEnds {
  readonly #ends = new Map<string, PromiseWithResolvers<VivEvent["type"]>>();

  async hear(events: AsyncIterable<VivEvent>): Promise<void> {
    for await (const { type, data } of events) {
      const { job } = data;
      if (typeof job === "string" && (type === "job.succeeded" || type === "job.failed")) this.#end(job).resolve(type);
    }
  }

  async of(job: string): Promise<VivEvent["type"]> {
    const type = await this.#end(job).promise;
    this.#ends.delete(job);
    return type;
  }

  #end(job: string): PromiseWithResolvers<VivEvent["type"]> {
    const end = this.#ends.get(job) ?? Promise.withResolvers<VivEvent["type"]>();
    this.#ends.set(job, end);
    return end;
  }
}

/** Until a status says that it succeeded, with what it printed. */
async function runJob(server: BenchServer, ends: JobEnds): Promise<void> {
  const { job_id } = await server.call("scheduleJob", JOB);
  await ends.of(job_id);
  const { state, stdout } = await server.call("jobStatus", { job_id });
  if (state !== "succeeded" || stdout !== "hello\n") throw new Error(`the job ${state}: ${stdout}`);
}

async function oneJob(server: BenchServer, ends: JobEnds, { quick }: Settings): Promise<Measured> {
  return compare({
    pairs: pairCount(quick, PAIRS),
    sides: [
      ["job", () => timed(() => runJob(server, ends))],
      ["create", () => server.createAndRemove()],
    ],
  });
}

async function manyJobs(server: BenchServer, ends: JobEnds, { quick }: Settings): Promise<Measured> {
  const each = (quick ? JOBS / 10 : JOBS) / CLIENTS;
  const latencies: number[] = [];
  let failures = 0;
  const client = async (): Promise<void> => {
    for (let index = 0; index < each; index += 1) {
      try {
        latencies.push(await timed(() => runJob(server, ends)));
      } catch (error) {
        failures += 1;
        process.stderr.write(`a job failed: ${String(error)}\n`);
      }
    }
  };
  const ms = await timed(() => Promise.all(Array.from({ length: CLIENTS }, client)));
  const raw = { latency: series(latencies) };
  return { figure: failures, raw, more: { per_second: Math.round((latencies.length / ms) * 1000), p95_ms: raw.latency.p95 } };
}
