/** AGT-6: what an agent did in a run, read back by another server, a person and a program. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEventBody } from "../../src/base/schema/run.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { RunJournal } from "../../src/work/agents/run-journal.ts";
import { newRun } from "../../src/work/agents/new-run.ts";
import { conversationsOn } from "../support/conversations.ts";
import { TestServer } from "../support/server.ts";
import { viv } from "../support/viv.ts";

const TASK = "Fix the failing login test";
const EVENTS: readonly RunEventBody[] = [
  { type: "started", agent: "claude", version: "1", model: "m", conversation: null },
  { type: "message", from: "person", text: TASK, message: null },
  { type: "thinking", text: "hmm" },
  { type: "message", from: "agent", text: "I'll look at the session code first.", message: null },
  { type: "tool_call", call: "c1", tool: "Bash", kind: "command", input: { command: "npm test" } },
  { type: "tool_result", call: "c1", tool: "Bash", ok: false, output: "expected 200, got 401 \x1b]0;evil\x07\x1b[2J" },
  { type: "message", from: "person", text: "Leave the cookies alone.", message: null },
  { type: "file_change", paths: ["src/login.ts"], more: 0 },
  { type: "guardian", step: "message", detector: "same-error", evidence: "401 three times" },
  { type: "usage", inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, contextTokens: null },
];

describe("the conversation of a run", () => {
  let server: TestServer;
  let store: Store;
  const row = newRun(
    { agent: "claude", task: TASK },
    { project: "/srv/p", experiment: null, attempt: null, program: "/bin/true" },
    undefined,
  );

  beforeAll(async () => {
    server = await TestServer.start();
    // Beside the server: an agent is not needed to write what one would.
    store = await openSqliteStore(join(server.paths.home, "vivarium.db"));
    const conversations = conversationsOn(store);
    await store.change((change) =>
      conversations.append(change, { run: row.id, project: row.project }, [{ role: "task", kind: "text", text: TASK }]),
    );
    const journal = new RunJournal(store, conversations, { info: () => undefined, warn: () => undefined }, row, () => undefined);
    for (const event of EVENTS) journal.event(event);
    await journal.written();
    await conversations.close();
  });
  afterAll(async () => {
    await store.close();
    await server.remove();
  });

  test("AGT-6: is what its events say, once, with calls and results", async () => {
    const { records, entries } = await server.client.call("readContext", { run: row.id });
    expect(entries.map(({ role, kind, text }) => [role, kind, text])).toEqual([
      ["task", "text", TASK],
      ["system", "text", "claude started with m."],
      ["agent", "text", "I'll look at the session code first."],
      ["agent", "tool-call", '{"command":"npm test"}'],
      ["tool", "tool-result", "error: expected 200, got 401 \x1b]0;evil\x07\x1b[2J"],
      ["person", "text", "Leave the cookies alone."],
      ["system", "text", "Files changed: src/login.ts."],
      ["guardian", "text", "message (same-error): 401 three times"],
    ]);
    expect(records).toBe(entries.length);
    expect(entries.filter(({ callId }) => callId === "c1").map(({ tool }) => tool)).toEqual(["Bash", "Bash"]);
  });

  test("AGT-6: is searched in one run and in all, by words and by meaning", async () => {
    const { hits, entries } = await server.client.call("readContext", { run: row.id, search: "cookie" });
    expect([hits[0]?.excerpt, entries]).toEqual(["Leave the cookies alone.", []]);
    const search = async (query: string, project?: string) =>
      (await server.client.call("searchConversations", { query, ...(project === undefined ? {} : { project }) })).hits;
    expect((await search("broken authentication check"))[0]).toMatchObject({ run: row.id, excerpt: TASK });
    expect(await search("cookie", "/srv/other")).toEqual([]);
    await expect(search("x".repeat(2_000))).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("AGT-6: is shown by viv context, also by the beginning of an id, and moves no cursor", async () => {
    const shown = viv(server, ["context", row.id.slice(0, 12)]);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.out).toContain("1 task (pinned)\n  Fix the failing login test\n");
    expect(shown.out).toContain("error: expected 200, got 401 \\x1b]0;evil\\x07\\x1b[2J");
    expect(shown.out).not.toContain("\x1b");
    const found = viv(server, ["context", row.id, "--search", 'AND ( "cookie']);
    expect(found.out).toContain("Leave the cookies alone.");
    expect(JSON.parse(viv(server, ["context", row.id, "--budget", "300", "--json"]).out)).toMatchObject({ run: row.id, hits: [] });
    expect(viv(server, ["context", row.id, "--budget", "1"]).code).not.toBe(0);
    const missing = viv(server, ["context", newId("run")]);
    expect([missing.code === 0, missing.out]).toEqual([false, ""]);
    expect(missing.err).toContain("There is no conversation of run");
  });
});
