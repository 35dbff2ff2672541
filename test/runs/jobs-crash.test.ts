/** TASK-1: jobs outlive the server that took them; no code is begun twice. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traces } from "../support/machine.ts";
import { ended, sandboxesOf, schedule, statusOf } from "../support/jobs.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Each run of the code leaves a line in the output, and its own process id. */
const CODE = "echo begun $$; sleep 0.2; echo done";
const ONCE = /^begun \d+\ndone\n$/;

describe("a server that is killed", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
  });

  afterAll(async () => server?.remove());

  /** No sandbox of a job stays, and nothing of one on the disk. */
  async function expectNothingLeft(): Promise<void> {
    await eventually(
      async () => [...(await sandboxesOf(server)), ...traces(server).runs, ...traces(server).volumes],
      (left) => left.length === 0,
      20_000,
    );
  }

  /** How often a command was started that runs the code of this job, in whichever sandbox. */
  async function starts(job: string): Promise<number> {
    const { events } = await server.client.call("listEvents", { limit: 1000 });
    return events.filter(({ type, data }) => type === "command.started" && JSON.stringify(data).includes(`/job-${job.slice(0, 8)}/`))
      .length;
  }

  for (const point of ["job.queued", "job.sandbox", "job.chosen", "job.started", "job.ended", "create.row", "create.launch"]) {
    test(`at ${point} loses no job and runs none twice`, async () => {
      const key = `key-${point}`;
      const input = { kind: "shell", code: CODE, idempotency_key: key } as const;
      await server.arm(point);
      // Killed before it answers or after: a client asks again with the same key.
      await schedule(server, input).catch(() => undefined);
      await server.died();
      await server.up();
      const job = await schedule(server, input);
      expect(await ended(server, job)).toMatchObject({ state: "succeeded", exitCode: 0 });
      expect((await server.client.call("jobStatus", { job_id: job })).stdout).toMatch(ONCE);
      expect(await starts(job)).toBe(1);
      await expectNothingLeft();
    });
  }

  test("TASK-1: while a job runs and others wait leaves all of them: output and exit code survive", async () => {
    const running = await schedule(server, { kind: "shell", code: "echo one; while ! test -e go; do sleep 0.05; done; echo two; exit 7" });
    await statusOf(server, running, ({ stdout }) => stdout === "one\n");
    const { sandbox } = await server.client.call("inspectJob", { job: running });
    await server.kill();
    await server.up();
    expect(await server.client.call("jobStatus", { job_id: running })).toMatchObject({ state: "running" });
    await statusOf(server, running, ({ stdout }) => stdout === "one\n");
    await server.sh(sandbox ?? "", "touch go");
    expect(await ended(server, running)).toMatchObject({ state: "failed", exitCode: 7 });
    expect((await server.client.call("jobStatus", { job_id: running })).stdout).toBe("one\ntwo\n");
    await expectNothingLeft();
  });

  test("TASK-1: a job that ended while no server was there has its output and its exit code", async () => {
    const job = await schedule(server, { kind: "shell", code: "echo begun; sleep 1; echo done; exit 3" });
    await statusOf(server, job, ({ stdout }) => stdout === "begun\n");
    const { sandbox } = await server.client.call("inspectJob", { job });
    await server.kill();
    const log = (): string => readFileSync(join(server.paths.home, "logs", sandbox ?? "", logName(server, sandbox ?? "")), "latin1");
    await eventually(log, (text) => text.includes("done\n"));
    await server.up();
    expect(await ended(server, job)).toMatchObject({ state: "failed", exitCode: 3 });
    expect((await server.client.call("jobStatus", { job_id: job })).stdout).toBe("begun\ndone\n");
    await expectNothingLeft();
  });

  test("a job whose sandbox is gone with the server has failed, and is not run twice", async () => {
    const job = await schedule(server, { kind: "shell", code: "echo begun; sleep 600" });
    await statusOf(server, job, ({ stdout }) => stdout === "begun\n");
    const { sandbox } = await server.client.call("inspectJob", { job });
    const { processId } = await server.client.call("inspectSandbox", { sandbox: sandbox ?? "" });
    await server.kill();
    process.kill(processId ?? 0, "SIGKILL");
    await server.up();
    const { state, reason } = await ended(server, job);
    expect(state).toBe("failed");
    expect(reason).toMatch(/sandbox ended while/);
    expect((await server.client.call("jobStatus", { job_id: job })).stdout).toBe("begun\n");
    await expectNothingLeft();
  });

  test("a server that stops in order leaves its jobs to the next one", async () => {
    const job = await schedule(server, { kind: "shell", code: "echo one; sleep 1; echo two" });
    await statusOf(server, job, ({ stdout }) => stdout === "one\n");
    await server.down();
    await server.up();
    expect(await ended(server, job)).toMatchObject({ state: "succeeded" });
    expect((await server.client.call("jobStatus", { job_id: job })).stdout).toBe("one\ntwo\n");
  });
});

/** The log of the one command of a sandbox. */
function logName(server: TestServer, sandbox: string): string {
  return readdirSync(join(server.paths.home, "logs", sandbox)).find((name) => name.endsWith(".log")) ?? "";
}
