/** A command as an agent: what it tells and fetches by plain HTTP from inside, and what the gateway sees of it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Run, RunMessage } from "../../src/base/schema/run.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const GATEWAY = "http://127.0.0.1:4097";
const QUESTION = JSON.stringify({ model: "demo", max_tokens: 8, messages: [{ role: "user", content: "hello" }] });
const ASK = `curl -sS -o /dev/null -d '${QUESTION}' ${GATEWAY}/model/anthropic/v1/messages`;
/** Goes on when a test has made this file. */
const until = (file: string): string => `while ! test -e ${file}; do sleep 0.05; done`;

describe("a command as an agent", needs("root", "curl"), () => {
  let model: ScriptedModel;
  let server: TestServer;
  let lab: RunLab;

  beforeAll(async () => {
    model = await ScriptedModel.open();
    server = await TestServer.start({
      config: {
        models: { anthropic: { url: model.url, secret: "anthropic" } },
        prices: { demo: { input: 1, output: 1 } },
        agents: { line: { protocol: "command", command: ["sh", "-c", "{task}"] } },
      },
    });
    lab = RunLab.on(server);
    const words = ["secret", "set", "anthropic", "--host", new URL(model.url).host, "--all-projects"];
    expect(viv(server, words, { input: "the-real-key\n" }).code).toBe(0);
  });
  afterAll(async () => {
    await server?.remove();
    model?.close();
  });

  const begin = async (...lines: readonly string[]): Promise<Run> => {
    const { id } = await lab.begin([lines.join("; ")], { agent: { agent: "line", guardian: "off" }, pick: "none" });
    return lab.until(id, ({ sandbox, startedAt }) => sandbox !== null && startedAt !== null);
  };
  const go = (run: Run, file: string): Promise<unknown> => server.sh(run.sandbox ?? "", `touch ${file}`);

  test("AGT-4: is seen to wait for a rate limit, with its end, and to go on", async () => {
    model.script("demo", [{ text: "hello", failures: [{ status: 429, headers: { "retry-after": "600" } }] }]);
    const began = Date.now();
    const run = await begin(ASK, until("go"), ASK, until("end"));
    const { activityUntil } = await lab.until(run.id, ({ activity }) => activity === "rate_limit");
    const endsInMs = Date.parse(activityUntil ?? "") - began;
    expect(endsInMs).toBeGreaterThanOrEqual(600_000);
    expect(endsInMs).toBeLessThan(660_000);
    expect(viv(server, ["tasks"], { cwd: server.project }).out).toMatch(/waits for a rate limit, which ends in \d+ min/);
    await go(run, "go");
    expect(await lab.until(run.id, ({ activity }) => activity !== "rate_limit")).toMatchObject({ activity: "model", activityUntil: null });
    await go(run, "end");
    expect(await lab.ended(run.id)).toMatchObject({ outcome: "done" });
    const waits = (await lab.events(run.id)).filter(({ type }) => type === "waiting" || type === "resumed");
    expect(waits).toMatchObject([
      { type: "waiting", for: "rate_limit", until: activityUntil },
      { type: "resumed", for: "rate_limit" },
    ]);
  });

  test("COORD-6: that asks a person is shown to wait for one until it has the answer", async () => {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ask_person", arguments: { question: "Drop it?" } } };
    const run = await begin(`curl -sS -d '${JSON.stringify(call)}' ${GATEWAY}/mcp`);
    expect(await lab.until(run.id, ({ activity }) => activity === "person")).toMatchObject({ activityUntil: expect.any(String) as string });
    expect(viv(server, ["tasks"], { cwd: server.project }).out).toMatch(/waits for a person/);
    const { approvals } = await server.client.call("listApprovals", {});
    const approval = approvals.find(({ target }) => target === "Drop it?")?.id ?? "";
    await server.client.call("answerApproval", { approval, answer: "once", approver: server.approver() });
    expect(await lab.ended(run.id)).toMatchObject({ outcome: "done" });
    const waits = (await lab.events(run.id)).filter(({ type }) => type === "waiting" || type === "resumed");
    expect(waits).toMatchObject([{ type: "waiting", for: "person", text: "Drop it?" }, { type: "resumed" }]);
  });

  test("AGT-7: fetches each message once, also over a crash of the server, and has it only when it says so", async () => {
    // A connection that breaks with the server is made again.
    const fetch = (file: string): string => `until curl -sfS '${GATEWAY}/sandbox/self/run/messages?wait=60' > ${file}; do sleep 0.1; done`;
    const settle = `for id in $(grep -ho 'msg[0-9a-z]*' first second); do curl -sfS -d '{"delivered": true}' ${GATEWAY}/sandbox/self/run/messages/$id; done`;
    const run = await begin(fetch("first"), until("again"), fetch("second"), until("settle"), settle, until("end"));
    const messages = async (): Promise<RunMessage[]> =>
      (await server.client.call("listRunMessages", { run: run.id })).messages.filter(({ from }) => from === "person");
    const states = async (): Promise<string[]> => (await messages()).map(({ state }) => state);
    const read = async (file: string): Promise<string[]> => {
      const { messages: fetched } = JSON.parse((await server.sh(run.sandbox ?? "", `cat ${file}`)).stdout || '{"messages": []}') as {
        messages: { text: string }[];
      };
      return fetched.map(({ text }) => text);
    };
    await server.client.call("sayToRun", { run: run.id, text: "one" });
    expect(await eventually(states, ([state]) => state === "sent")).toEqual(["sent"]);
    await server.kill();
    await server.up();
    await go(run, "again");
    await server.client.call("sayToRun", { run: run.id, text: "two" });
    expect(await eventually(states, (now) => now.join() === "sent,sent")).toEqual(["sent", "sent"]);
    await eventually(
      () => read("second"),
      (texts) => texts.length > 0,
    );
    expect([await read("first"), await read("second")]).toEqual([["one"], ["two"]]);
    await go(run, "settle");
    expect(await eventually(states, (now) => now.join() === "delivered,delivered")).toEqual(["delivered", "delivered"]);
    await go(run, "end");
    expect(await lab.ended(run.id)).toMatchObject({ outcome: "done", restarts: 0 });
    const heard = (await lab.events(run.id)).filter((event) => event.type === "message" && event.from === "person");
    expect(heard).toMatchObject([{ message: expect.any(String) as string }, { text: "one" }, { text: "two" }]);
  });
});
