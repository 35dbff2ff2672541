/**
 * What chats and programs hand in, in every run: a task, a job, and ten tasks of several chat clients at once, with what they leave; a
 * thousand of them in `npm run soak -- mcp`. test/runs has the rest.
 */
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, describe, test } from "vitest";
import { ChatLab, use, type Fields } from "../support/agents/chat-lab.ts";
import { ended, http } from "../support/jobs.ts";
import { traces } from "../support/machine.ts";
import { heldBy, percentile } from "../support/measure.ts";
import { negotiation } from "../support/mcp-client.ts";
import { eventually, freePort } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds, SOAKING } from "../support/soak.ts";

const TASKS = rounds(10, 1000);
/** After so many, everything that is loaded once has been. */
const WARM = rounds(0, 100);
const AT_ONCE = 10;
const MB = 1024 ** 2;

/** A soak takes long: how it stands, on the way. */
function say(text: string): void {
  if (SOAKING) process.stdout.write(`${text}\n`);
}

interface Held {
  readonly descriptors: number;
  readonly memoryBytes: number;
}

describe("several chat clients", needs("root"), () => {
  let lab: ChatLab;
  let clients: Client[];
  let remote: Client;

  beforeAll(async () => {
    const port = await freePort();
    lab = await ChatLab.open({ flags: ["--listen", String(port)], env: { PATH: ChatLab.path } });
    remote = new Client({ name: "a-test", version: "1" }, negotiation("modern"));
    const headers = { authorization: `Bearer ${readFileSync(lab.server.paths.token, "utf8").trim()}` };
    await remote.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), { requestInit: { headers } }));
    clients = [await lab.client({ era: "legacy" }), await lab.client(), await lab.client(), await lab.client(), remote];
  });
  afterAll(async () => {
    await remote?.close();
    await lab?.remove();
  });

  const task = async (client: Client, name: string): Promise<string | undefined> => {
    let done: Fields = await use(client, "execute_task", {
      task_description: `call wc -l < in.txt > ${name}`,
      files: [{ path: "in.txt", text: "a\n" }],
    });
    while (done["status"] === "running") done = await use(client, "wait", { session_id: done["session_id"] });
    const isRight = done["status"] === "completed" && String(done["files_created"]) === name;
    await use(client, "cleanup_sandbox", { session_id: done["session_id"] });
    return isRight ? undefined : JSON.stringify(done);
  };

  /** What failed, and how long each took. */
  async function give(count: number): Promise<{ failures: string[]; times: number[] }> {
    const left = Array.from({ length: count }, (_, index) => `lines-${index}.txt`);
    const failures: string[] = [];
    const times: number[] = [];
    const work = async (_: unknown, index: number): Promise<void> => {
      const client = clients[index % clients.length] ?? remote;
      for (let name = left.pop(); name !== undefined; name = left.pop()) {
        const began = performance.now();
        const failed = await task(client, name).catch((error: unknown) => String(error));
        if (failed !== undefined) failures.push(failed);
        times.push(performance.now() - began);
        if (times.length % 100 === 0) say(`${times.length} tasks, ${failures.length} failures`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { failures, times };
  }

  const held = async (): Promise<Record<string, Held>> => {
    const programs = clients.flatMap(({ transport }) => (transport as Partial<StdioClientTransport> | undefined)?.pid ?? []);
    const { pid } = await lab.server.client.call("status", {});
    return Object.fromEntries([["server", heldBy(pid)], ...programs.map((id, index) => [`client ${index + 1}`, heldBy(id)] as const)]);
  };

  /** What is left of sandboxes: volumes, run folders, logs, mounts. */
  const leftovers = async (): Promise<string[]> => {
    const { sandboxes } = await lab.server.client.call("listSandboxes", {});
    const { volumes, runs, logs, mounts } = traces(lab.server);
    return [...sandboxes.map(({ id }) => id), ...volumes, ...runs, ...logs, ...mounts.filter((path) => path.includes("sbx"))];
  };

  test("MCP-1: give a task with files, get exactly what S3 names, and throw it away", async () => {
    const done = await use(remote, "execute_task", {
      task_description: "call wc -l < data/in.csv > lines.txt\ntext I counted the lines",
      files: [{ path: "data/in.csv", content: Buffer.from("a\nb\n").toString("base64") }],
    });
    expect(Object.keys(done)).toEqual(["session_id", "status", "output", "files_created", "duration_seconds"]);
    expect(done).toMatchObject({ status: "completed", output: expect.stringContaining("counted"), files_created: ["lines.txt"] });
    const { session_id } = done;
    expect(await use(remote, "download_files", { session_id })).toMatchObject({
      files: [{ path: "lines.txt", content: Buffer.from("2\n").toString("base64") }],
    });
    expect(await use(remote, "cleanup_sandbox", { session_id })).toEqual({ session_id, status: "removed" });
  });

  test("TASK-2, TASK-3: have programs beside them: a job is given by POST /schedule, and GET /status tells what it printed", async () => {
    const scheduled = await http(lab.server, "POST", "/schedule", { kind: "shell", code: "pwd; echo wrong >&2; exit 3" });
    const { job_id } = scheduled.body as { job_id: string };
    expect(await ended(lab.server, job_id)).toMatchObject({ state: "failed", exitCode: 3 });
    const { body } = await http(lab.server, "GET", `/status/${job_id}`);
    expect(body).toEqual({ state: "failed", stdout: "/workspace\n", stderr: "wrong\n" });
  });

  test(
    "BOX-7, MCP-3: have ten tasks done at once, again and again, and nothing of them stays",
    { timeout: rounds(120_000, 3_600_000) },
    async () => {
      const warm = await give(WARM);
      const [before, began] = [await held(), performance.now()];
      const { failures, times } = await give(TASKS - WARM);
      const seconds = (performance.now() - began) / 1000;
      const after = await held();
      say(
        JSON.stringify({
          tasks: TASKS,
          failures: warm.failures.length + failures.length,
          perSecond: times.length / seconds,
          p50: percentile(times, 0.5),
          p95: percentile(times, 0.95),
          before,
          after,
        }),
      );
      expect([...warm.failures, ...failures]).toEqual([]);
      expect((await lab.server.client.call("listExperiments", {})).experiments).toEqual([]);
      await eventually(leftovers, (names) => names.length === 0, 30_000);
      if (!SOAKING) return;
      for (const [name, { descriptors, memoryBytes }] of Object.entries(after)) {
        expect(descriptors, `descriptors of ${name}`).toBeLessThan((before[name]?.descriptors ?? 0) + 20);
        expect(memoryBytes, `memory of ${name}`).toBeLessThan((before[name]?.memoryBytes ?? 0) + 150 * MB);
      }
    },
  );
});
