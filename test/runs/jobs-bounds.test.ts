/** TASK-2: what a job reaches, and how long it is kept. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { http, run, schedule } from "../support/jobs.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const DAY_MS = 24 * 3_600_000;

describe("a job", needs("root", "curl"), () => {
  let clock: JumpingClock;
  let resolver: TestResolver;
  let web: Server;
  let server: TestServer;
  let heard = 0;

  beforeAll(async () => {
    clock = new JumpingClock();
    resolver = await TestResolver.open();
    resolver.names.set("data.test", ["127.0.0.2"]);
    web = createServer((_, response) => response.end(`answer ${(heard += 1)}`)).listen(0, "127.0.0.2");
    await once(web, "listening");
    const { port } = web.address() as AddressInfo;
    const network = { private: [{ host: "data.test", ports: [port] }], resolvers: [resolver.address], ceiling: "public" };
    server = await TestServer.start({ config: { network }, env: clock.env });
  });
  afterAll(async () => {
    web?.close();
    resolver?.close();
    clock?.remove();
    await server?.remove();
  });

  test("TASK-2: reaches the web as its `network` says, and tells which mode was asked for", async () => {
    const { port } = web.address() as AddressInfo;
    const code = `curl -sS -m 10 http://data.test:${port}/ || echo closed`;
    expect(await run(server, { kind: "shell", code, network: "public" })).toMatchObject({ stdout: "answer 1", job: { network: "public" } });
    const off = await run(server, { kind: "shell", code, network: "off" });
    expect(off.job).toMatchObject({ network: "off", state: "succeeded" });
    expect(off.stdout).not.toContain("answer");
    expect(heard).toBe(1);
    expect((await run(server, { kind: "shell", code })).job.network).toBe(null);
  });

  /** Sets the server's clock ahead, and runs jobs until one has ended by the new time. */
  async function later(ms: number): Promise<void> {
    const from = new Date(clock.now() + ms).toISOString();
    clock.jump(ms);
    await eventually(
      () => run(server, { kind: "shell", code: "true" }),
      ({ job }) => (job.endedAt ?? "") >= from,
    );
  }

  test("TASK-2: is removed after a week, when it is not found any more and its key is free for another request", async () => {
    const input = { kind: "shell", idempotency_key: "weekly" } as const;
    const { job } = await run(server, { ...input, code: "echo first" });
    await expect(schedule(server, { ...input, code: "echo second" })).rejects.toMatchObject({ code: "key_reused" });
    // A day before, it is still there.
    await later(LIMITS.keptJobMs - DAY_MS);
    expect(await http(server, "GET", `/status/${job.id}`)).toMatchObject({ status: 200, body: { stdout: "first\n" } });
    await later(2 * DAY_MS);
    // Old jobs go after the end of another one was told.
    const gone = await eventually(
      () => http(server, "GET", `/status/${job.id}`),
      ({ status }) => status !== 200,
    );
    expect(gone).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
    expect(await http(server, "GET", `/jobs/${job.id}`)).toMatchObject({ status: 404 });
    const { jobs } = await server.client.call("listJobs", {});
    expect(jobs.map(({ id }) => id)).not.toContain(job.id);
    const again = await run(server, { ...input, code: "echo second" });
    expect(again).toMatchObject({ state: "succeeded", stdout: "second\n" });
    expect(again.job.id).not.toBe(job.id);
  });
});
