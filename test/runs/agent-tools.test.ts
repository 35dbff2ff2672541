/** What an agent can do with its own sandbox: tasks, snapshots, the way back, its status; by plain requests and as tools. */
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer, eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

let server: TestServer;

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function ask(box: string, path: string, body?: unknown): Promise<Answer> {
  const { stdout, stderr } = await server.client.call("runCommand", {
    sandbox: box,
    command: [
      "curl",
      "-sS",
      "-w",
      "\n%{http_code}",
      ...(body === undefined ? [] : ["--data-binary", "@-"]),
      `http://localhost:4097${path}`,
    ],
    ...(body === undefined ? {} : { stdin: JSON.stringify(body) }),
  });
  if (stderr !== "") throw new Error(stderr);
  const cut = stdout.lastIndexOf("\n");
  return { status: Number(stdout.slice(cut + 1)), body: JSON.parse(stdout.slice(0, cut) || "{}") as Answer["body"] };
}

const code = ({ body }: Answer): unknown => (body["error"] as { code?: string } | undefined)?.code;

/** A tool call as an MCP client sends it. */
async function tool(
  box: string,
  name: string,
  given: unknown = {},
): Promise<{ isError?: boolean; structuredContent: Record<string, unknown>; text: string }> {
  const { body } = await ask(box, "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } });
  const result = body["result"] as { isError?: boolean; structuredContent?: Record<string, unknown>; content: [{ text: string }] };
  return { structuredContent: {}, ...result, text: result.content[0].text };
}

const records = async (box: string) => (await server.client.call("listDecisions", { sandbox: box, limit: 1000 })).records;

describe("an agent's tools", needs("root", "curl"), () => {
  let one: string;
  let reviewer: string;

  beforeAll(async () => {
    server = await TestServer.start({
      config: { budgets: { sandbox: 5 }, expose: [dirname(dirname(process.execPath))] },
    });
    one = (await server.create({ name: "one" })).id;
    reviewer = (await server.create({ name: "reviewer", role: "reviewer" })).id;
  });
  afterAll(async () => server?.remove());

  test("COORD-6: a task is in the backlog and in the project's .tasks", async () => {
    const { status, body } = await ask(one, "/sandbox/self/tasks", { title: "Rename it", description: "Everywhere." });
    expect([status, Object.keys(body)]).toEqual([201, ["created", "taskId"]]);
    const file = await server.sh(one, `cat .tasks/${String(body["taskId"])}.md`);
    expect(file.stdout).toMatch(/^# Rename it\n\nEverywhere\.\n\nPriority: medium\. Left by one, /);
    const { entries } = await server.client.call("diffSandbox", { sandbox: one });
    expect(entries.map(({ path }) => path)).toContain(`.tasks/${String(body["taskId"])}.md`);
    expect((await tool(one, "create_task", { title: "Next", priority: "high" })).structuredContent).toMatchObject({ created: true });
    expect((await ask(reviewer, "/sandbox/self/tasks")).body["tasks"]).toMatchObject([
      { title: "Next", priority: "high", sandboxName: "one" },
      { title: "Rename it", priority: "medium" },
    ]);
    expect((await records(one)).filter(({ action }) => action === "create_task")).toMatchObject([
      { target: "Rename it" },
      { target: "Next" },
    ]);
  });

  test("a task can't be written where the sandbox itself could not write", async () => {
    const box = (await server.create({ name: "linked" })).id;
    // A link out of the project leads to a place inside the sandbox, never to reality's.
    await server.sh(box, "mkdir -p /tmp/elsewhere && ln -s /tmp/elsewhere .tasks");
    const { body } = await ask(box, "/sandbox/self/tasks", { title: "Where?" });
    const { stdout } = await server.sh(box, "ls /tmp/elsewhere");
    expect(stdout.trim()).toBe(`${String(body["taskId"])}.md`);
    await server.sh(box, "rm .tasks && touch .tasks");
    expect((await ask(box, "/sandbox/self/tasks", { title: "Nowhere" })).status).toBeGreaterThanOrEqual(400);
    for (const title of ["", " ", "two\nlines", "x".repeat(201), "\u001b[2J"])
      expect(code(await ask(box, "/sandbox/self/tasks", { title })), JSON.stringify(title)).toBe("invalid_input");
  });

  test("POL-7: a reviewer has no tool that changes something", async () => {
    expect(code(await ask(reviewer, "/sandbox/self/tasks", { title: "Mine" }))).toBe("denied");
    expect(code(await ask(reviewer, "/sandbox/self/snapshots", {}))).toBe("denied");
    expect((await tool(reviewer, "roll_back", { snapshot: "x" })).text).toMatch(/^denied/);
    const { body } = await ask(reviewer, "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" });
    const names = (body["result"] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    expect(names).toEqual(["sibling_requests", "answer_sibling", "read_conversation", "ask_person", "status"]);
  });

  test("COORD-2: a worker asks a reviewer and gets its answer, by tools alone", async () => {
    const asked = tool(one, "coordinate_sibling", { targetSandboxId: "reviewer", action: "review", context: "auth.ts" });
    const { structuredContent } = await tool(reviewer, "sibling_requests", { wait: 30 });
    const [request] = structuredContent["messages"] as { id: string; context: string }[];
    expect(request?.context).toBe("auth.ts");
    await tool(reviewer, "answer_sibling", { message: request?.id, answer: "approved" });
    expect((await asked).structuredContent).toMatchObject({ fromName: "reviewer", answer: "approved", provenance: "sibling" });
  });

  test("BOX-11: a sandbox can ask its limits, use, lifetime, budget and staleness", async () => {
    const { status, body } = await ask(one, "/sandbox/self/status");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      name: "one",
      state: "running",
      limits: { cpus: 2 },
      spent: 0,
      left: { sandbox: 5, task: null, project: null, day: null },
      staleness: { stale: false, changes: 0 },
      run: null,
    });
    expect((body["use"] as { processes: number }).processes).toBeGreaterThan(0);
    const { structuredContent } = await tool(one, "status");
    expect((structuredContent["siblings"] as { name: string }[]).map(({ name }) => name)).toContain("reviewer");
  });

  test("ask_person waits for the person's answer, and can't give it itself", async () => {
    const asked = tool(one, "ask_person", { question: "Drop the old table?", reason: "The migration is done.", wait: 60 });
    const { approvals } = await eventually(
      () => server.client.call("listApprovals", {}),
      (list) => list.approvals.some(({ target }) => target === "Drop the old table?"),
    );
    const approval = approvals.find(({ target }) => target === "Drop the old table?")?.id ?? "";
    await server.client.call("answerApproval", { approval, answer: "once", approver: server.approver() });
    expect((await asked).structuredContent).toMatchObject({ id: approval, state: "approved" });
  });

  test("SNAP-2: an agent rolls its sandbox back to its own snapshot, and what was there is kept", async () => {
    const box = (await server.create({ name: "turning" })).id;
    await server.sh(box, "echo good > state");
    expect((await tool(box, "snapshot", { name: "good" })).structuredContent).toMatchObject({ name: "good", sandbox: box });
    await server.sh(box, "echo bad > state");
    const { status, body } = await ask(box, "/sandbox/self/rollback", { snapshot: "good" });
    expect([status, body["accepted"]]).toEqual([200, true]);
    const shown = async (): Promise<string> => (await server.sh(box, "cat state").catch(() => ({ stdout: "" }))).stdout;
    await eventually(shown, (text) => text === "good\n");
    const { snapshots } = await server.client.call("listSnapshots", { sandbox: box });
    expect(snapshots.map(({ id }) => id)).toContain(body["before"]);
    expect((await records(box)).map(({ action }) => action)).toEqual(expect.arrayContaining(["snapshot", "roll_back"]));
  });

  test("an agent can't go to another sandbox's snapshot, and its policy is asked first", async () => {
    const foreign = await server.client.call("createSnapshot", { sandbox: one, name: "foreign" });
    const guided = (await server.create({ name: "guided", level: 1 })).id;
    expect((await ask(guided, "/sandbox/self/snapshots", { name: "mine" })).status).toBe(201);
    const asked = await ask(guided, "/sandbox/self/rollback", { snapshot: "mine" });
    expect([asked.status, asked.body["verdict"]]).toEqual([202, "ask"]);
    const box = (await server.create({ name: "curious" })).id;
    for (const snapshot of [foreign.id, "foreign"]) expect(code(await ask(box, "/sandbox/self/rollback", { snapshot }))).toBe("not_found");
    expect((await server.sh(box, "echo alive")).stdout).toBe("alive\n");
  });
});
