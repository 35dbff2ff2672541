/** Requests of an agent that no adapter understands, against a run that is scripted: what is taken, how large, how often. */
import { describe, expect, test } from "vitest";
import { VivError } from "../../src/base/schema/errors.ts";
import type { AuditEntry } from "../../src/base/schema/audit.ts";
import type { Run, RunMessage, ToldEvent } from "../../src/base/schema/run.ts";
import type { Reply } from "../../src/interfaces/gateway/http.ts";
import { GatewayRoutes, type GatewayParts } from "../../src/interfaces/gateway/routes.ts";
import type { ReadConversation, RunGateway } from "../../src/work/agents/run-gateway.ts";
import type { Runs } from "../../src/work/agents/runs.ts";
import { RunsGateway } from "../../src/work/agents/runs-gateway.ts";
import { aSandboxRow } from "../support/rows.ts";

const row = aSandboxRow();

class ScriptedRun implements RunGateway {
  readonly heard: ToldEvent[] = [];
  readonly settled: unknown[] = [];
  readonly waits: number[] = [];
  readonly read: unknown[] = [];
  queue: RunMessage[] = [];
  status = "working";

  modelAnswered(): void {
    throw new Error("no model was asked");
  }
  personAsked(): void {
    throw new Error("no person was asked");
  }

  async find(): Promise<Run> {
    return { ...RUN, events: this.heard.length, state: this.status === "done" ? "completing" : "running" };
  }
  async setStatus(_: string, { status }: { status: string }): Promise<Run> {
    this.status = status;
    return this.find();
  }
  async events(_: string, events: readonly ToldEvent[]): Promise<Run> {
    this.heard.push(...events);
    return this.find();
  }
  async messages(_: string, waitMs: number): Promise<RunMessage[]> {
    this.waits.push(waitMs);
    return this.queue.splice(0);
  }
  async settle(...given: unknown[]): Promise<void> {
    this.settled.push(given.slice(1));
  }
  async conversation(sandbox: string, of: string, { search }: { search: string | undefined }): Promise<ReadConversation> {
    this.read.push([sandbox, of, search]);
    return { run: RUN.id, provenance: "record", records: 1, entries: [], hits: [] };
  }
  async rollBack(): Promise<boolean> {
    return true;
  }
}

const RUN: Run = {
  id: `run${"0".repeat(26)}`,
  task: "Fix it",
  agent: "mine",
  model: null,
  project: "/p",
  sandbox: row.id,
  experiment: null,
  attempt: null,
  state: "running",
  health: "ok",
  activity: "model",
  activityUntil: null,
  outcome: null,
  reason: null,
  conversation: null,
  steps: 1,
  mostSteps: 5,
  budget: 2,
  cost: 0.5,
  snapshot: null,
  restarts: 0,
  events: 0,
  createdAt: "2026-01-01T00:00:00.000Z",
  startedAt: null,
  endedAt: null,
};
const MESSAGE: RunMessage = {
  id: `msg${"0".repeat(26)}`,
  run: RUN.id,
  from: "person",
  text: "Use tabs.",
  way: "urgent",
  state: "sent",
  reason: null,
  createdAt: "2026-01-01T00:00:00.000Z",
  settledAt: null,
};

function gateway(runs: RunGateway): {
  ask: (method: string, path: string, body?: unknown) => Promise<Reply>;
  notes: AuditEntry[];
  routes: GatewayRoutes;
} {
  const notes: AuditEntry[] = [];
  const store = { sandboxes: { get: async () => row } };
  const parts = { parts: { store, live: { touch: () => undefined } }, audit: { note: (entry: AuditEntry) => notes.push(entry) }, runs };
  const routes = new GatewayRoutes(parts as unknown as GatewayParts);
  const ask = (method: string, path: string, body?: unknown): Promise<Reply> => {
    const { pathname, searchParams } = new URL(path, "http://localhost/sandbox/self/");
    const bodyBytes = body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body));
    const query = Object.fromEntries(searchParams);
    return routes.answer(row.id, {
      method,
      path: pathname.split("/").filter(Boolean),
      query,
      body,
      bodyBytes,
      signal: new AbortController().signal,
    });
  };
  return { ask, notes, routes };
}

const codeOf = (reply: Promise<Reply>): Promise<unknown> =>
  reply.then(
    ({ status }) => status,
    (error: VivError) => error.code,
  );
const thought = { type: "thinking", text: "hm" };

describe("the conversation of a run, read from inside", () => {
  const [worker, reviewer] = [aSandboxRow({ name: "worker" }), aSandboxRow({ name: "reviewer" })];
  const rows = new Map([worker, reviewer].map((each) => [each.id, each]));

  function siblings(): { run: ScriptedRun; ask: (sandbox: string, method: string, path: string, body?: object) => Promise<Reply> } {
    const run = new ScriptedRun();
    const sandboxes = { get: async (id: string) => rows.get(id), find: async () => undefined };
    const actions = { refusal: async () => undefined };
    const audit = { record: async () => undefined };
    const routes = new GatewayRoutes({
      parts: { store: { sandboxes }, live: { touch: () => undefined } },
      audit,
      actions,
      reviews: { offered: () => [] },
      runs: run,
    } as unknown as GatewayParts);
    return {
      run,
      ask: (sandbox, method, path, body) => {
        const { pathname, searchParams } = new URL(path, "http://localhost/sandbox/self/");
        const [query, signal] = [Object.fromEntries(searchParams), new AbortController().signal];
        return routes.answer(sandbox, { method, path: pathname.split("/").filter(Boolean), query, body, bodyBytes: 10, signal });
      },
    };
  }

  test("AGT-6: is its own, or that of the run before, and of no other sandbox", async () => {
    const { run, ask } = siblings();
    expect(await ask(worker.id, "GET", "run/conversation?of=before&search=login")).toMatchObject({ body: { provenance: "record" } });
    await ask(worker.id, "GET", "run/conversation");
    expect(run.read).toEqual([
      [worker.id, "before", "login"],
      [worker.id, "self", undefined],
    ]);
    for (const of of [reviewer.id, RUN.id, MESSAGE.id, "..", ""])
      expect(await codeOf(ask(worker.id, "GET", `run/conversation?of=${of}`)), of).toMatch(/not_found|invalid_input/);
    expect(await codeOf(ask(worker.id, "GET", "run/conversation?budget=1000000"))).toBe("invalid_input");
    expect(await codeOf(ask(worker.id, "GET", `../${reviewer.id}/run/conversation`))).toBe("not_found");
    expect(run.read).toHaveLength(2);
  });

  test.each([true, false])("AGT-6: is read by a sibling that was given it (%s), until it has answered", async (conversation) => {
    const { run, ask } = siblings();
    const answer = ask(worker.id, "POST", `../${reviewer.id}/coordinate`, { action: "review", conversation });
    const { body } = await ask(reviewer.id, "GET", "messages?wait=10");
    const [message] = (body as { messages: { id: string; conversation: boolean }[] }).messages;
    expect(message?.conversation).toBe(conversation);
    const read = (sandbox: string): Promise<unknown> => codeOf(ask(sandbox, "GET", `run/conversation?of=${message?.id}`));
    expect(await read(reviewer.id)).toBe(conversation ? 200 : "not_found");
    expect(await read(worker.id)).toBe("not_found");
    expect(run.read).toEqual(conversation ? [[worker.id, "self", undefined]] : []);
    await ask(reviewer.id, "POST", `messages/${message?.id}/answer`, { answer: "fine" });
    expect(await answer).toMatchObject({ body: { answer: "fine" } });
    expect(await read(reviewer.id)).toBe("not_found");
  });
});

describe("an agent without an adapter", () => {
  test("AGT-7: tells what it does, in its own order", async () => {
    const run = new ScriptedRun();
    const { ask } = gateway(run);
    const call = { type: "tool_call", call: "1", tool: "sh", kind: "command", input: { line: "ls" } };
    const said = { type: "message", text: "Done." };
    expect(await ask("POST", "events", { events: [thought, call, said] })).toEqual({ status: 201, body: { accepted: 3, events: 3 } });
    expect(run.heard).toEqual([thought, call, { ...said, from: "agent", message: null }]);
    expect((await ask("POST", "events", { events: [] })).status).toBe(201);
  });

  test("can't tell what the server sees or what people say", async () => {
    const run = new ScriptedRun();
    const { ask } = gateway(run);
    for (const event of [
      { type: "file_change", paths: ["a"], more: 0 },
      { type: "guardian", step: "stop", detector: "x", evidence: "y" },
      { type: "message", from: "person", text: "Go on.", message: null },
      { type: "started", agent: "x", version: null, model: null, conversation: null },
      { ...thought, sequence: 1 },
      { type: "odd" },
      null,
    ])
      expect(await codeOf(ask("POST", "events", { events: [event] })), JSON.stringify(event)).toBe("invalid_input");
    expect(run.heard).toEqual([]);
  });

  test("AGT-3: fetches what is said to it, and says that it has it", async () => {
    const run = new ScriptedRun();
    run.queue = [MESSAGE];
    const { ask } = gateway(run);
    const { body } = await ask("GET", "run/messages?wait=2.5");
    expect(body).toEqual({
      messages: [{ id: MESSAGE.id, from: "person", text: "Use tabs.", way: "urgent", createdAt: MESSAGE.createdAt }],
    });
    expect(run.waits).toEqual([2500]);
    await ask("POST", `run/messages/${MESSAGE.id}`, { delivered: true });
    await ask("POST", `run/messages/${MESSAGE.id}`, { delivered: false, reason: "It is idle." });
    expect(run.settled).toEqual([
      [MESSAGE.id, true, null],
      [MESSAGE.id, false, "It is idle."],
    ]);
  });

  test("AGT-7: asks and tells how its task stands", async () => {
    const { ask } = gateway(new ScriptedRun());
    expect((await ask("GET", "run/status")).body).toMatchObject({ task: "Fix it", state: "running", steps: 1, mostSteps: 5, cost: 0.5 });
    expect((await ask("PUT", "run/status", { status: "done", text: "All tests pass." })).body).toMatchObject({ state: "completing" });
    expect(await codeOf(ask("PUT", "run/status", { status: "promoted" }))).toBe("invalid_input");
  });

  test("may send 100 events and 60 other calls a minute; more are refused and counted", async () => {
    const run = new ScriptedRun();
    const { ask, notes, routes } = gateway(run);
    expect(await codeOf(ask("POST", "events", { events: Array.from({ length: 99 }, () => thought) }))).toBe(201);
    expect(await codeOf(ask("POST", "events", { events: [] }))).toBe(201);
    expect(await codeOf(ask("POST", "events", { events: Array.from({ length: 50 }, () => thought) }))).toBe("rate_limited");
    const others = await Promise.all(Array.from({ length: 70 }, (_, n) => codeOf(ask("GET", n % 2 === 0 ? "run/status" : "run/messages"))));
    expect(others.filter((code) => code === 200)).toHaveLength(60);
    expect(others.filter((code) => code === "rate_limited")).toHaveLength(10);
    expect(run.heard).toHaveLength(99);
    routes.forget(row.id);
    expect(notes).toMatchObject([{ action: "gateway.dropped", arguments: { dropped: { event: 1, run: 10 } } }]);
  });

  test("sends no more than 100 kB of events, and 10 kB otherwise", async () => {
    const { ask } = gateway(new ScriptedRun());
    const large = { type: "thinking", text: "x".repeat(50_000) };
    expect(await codeOf(ask("POST", "events", { events: [large] }))).toBe(201);
    expect(await codeOf(ask("POST", "events", { events: [large, large] }))).toBe("too_large");
    expect(await codeOf(ask("PUT", "run/status", { status: "done", text: "x".repeat(10_000) }))).toBe("too_large");
  });

  test("is told where there is no run", async () => {
    const { ask } = gateway(new RunsGateway({ in: () => undefined } as unknown as Runs));
    for (const [method, path, body] of [
      ["GET", "run/status"],
      ["PUT", "run/status", { status: "done" }],
      ["POST", "events", { events: [] }],
      ["GET", "run/messages"],
      ["POST", "run/messages/msg1", { delivered: true }],
    ] as const)
      expect(await codeOf(ask(method, path, body)), path).toBe("not_found");
  });
});
