/** AGT-1 to AGT-7: a run of an agent, from its task to its verdict, with an agent that does exactly what it is told. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Vivarium } from "../../src/interfaces/sdk/node.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a run", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open({ agents: { loginless: { protocol: "acp", command: ["true"], providers: ["openai"] } } });
  });
  afterAll(async () => lab?.remove());

  test("AGT-2: is told as events in order, from its start to its end, and proven by its check", async () => {
    const { id } = await lab.begin(["text I begin", "call echo out; echo fixed > fixed.txt", "text I am done"], {
      checks: ["test -f fixed.txt"],
    });
    const run = await lab.ended(id);
    expect(run).toMatchObject({ state: "completed", outcome: "done", steps: 1, agent: "claude", reason: null });
    const events = await lab.events(id);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const types = events.map(({ type }) => type).filter((type) => type !== "file_change");
    expect(types.join(" ")).toBe("started turn message message tool_call tool_result message usage turn finished");
    expect(events.find(({ type }) => type === "tool_result")).toMatchObject({ ok: true, output: "out\n", tool: "Bash" });
    // Seen in the clone, not told by the agent.
    expect(events.filter(({ type }) => type === "file_change").flatMap((event) => ("paths" in event ? event.paths : []))).toContain(
      "fixed.txt",
    );
    const experiment = await lab.server.client.call("inspectExperiment", { experiment: run.experiment ?? "" });
    expect(experiment).toMatchObject({ winner: 1, attempts: [{ run: id, diff: { files: 1 }, sideChanges: [] }] });
  });

  test("AGT-3: hears what is said to it at its next step, urgent words first, each once", async () => {
    const { id } = await lab.begin(["call touch ready", "hold go", "text on"]);
    await lab.waitForEvent(id, "tool_result");
    const { client } = lab.server;
    await client.call("sayToRun", { run: id, text: "later", way: "after-turn" });
    await client.call("sayToRun", { run: id, text: "first" });
    await client.call("sayToRun", { run: id, text: "now", way: "urgent" });
    const { sandbox } = await client.call("inspectRun", { run: id });
    await lab.until(id, ({ steps }) => steps === 1);
    await lab.server.sh(sandbox ?? "", "touch go");
    await lab.ended(id);
    const { messages } = await client.call("listRunMessages", { run: id });
    expect(messages.map(({ state }) => state)).toEqual(["delivered", "delivered", "delivered", "delivered"]);
    const heard = (await lab.events(id)).flatMap((event) =>
      event.type === "message" && event.text.startsWith("heard: ") ? [event.text] : [],
    );
    expect(heard).toEqual(["heard: first", "heard: now"]);
    const told = (await lab.events(id)).flatMap((event) => (event.type === "message" && event.from === "person" ? [event.text] : []));
    expect(told.slice(1)).toEqual(["first", "now", "later"]);
    await expect(client.call("sayToRun", { run: id, text: "too late" })).rejects.toMatchObject({ code: "not_running" });
  });

  test("API-1: is given, followed, spoken to and judged by a program through the SDK", async () => {
    const viv = new Vivarium({ home: lab.server.paths.home, start: false });
    const lines = ["call touch ready", "hold go", "text on", "call echo fixed > fixed.txt"];
    const task = await viv.task(lines.join("\n"), { project: lab.server.project, checks: ["test -f fixed.txt"], steps: 9 });
    const types: string[] = [];
    for await (const event of task) {
      types.push(event.type);
      if (event.type !== "tool_result" || types.includes("finished")) continue;
      const { sandbox, steps } = await task.info();
      if (steps > 1 || sandbox === null) continue;
      expect(await task.say("look here")).toMatchObject({ text: "look here", way: "steer" });
      await (await viv.get(sandbox)).files.write("go", "");
    }
    const { ok, run, attempt } = await task.result();
    expect([ok, run.outcome, run.mostSteps, attempt.passed]).toEqual([true, "done", 9, true]);
    expect(types.filter((type) => type === "finished")).toHaveLength(1);
    const { messages } = await viv.call("listRunMessages", { run: task.id });
    expect(messages.at(-1)).toMatchObject({ text: "look here", state: "delivered" });
    expect((await attempt.promote({ checks: [] })).state).toBe("applied");
    await viv.undo({ project: lab.server.project });
    await task.experiment.remove();
    viv.close();
  });

  test("AGT-3: gets each message once, also where another comes while a snapshot is taken before its turn", async () => {
    const { id } = await lab.begin(["call touch ready", "hold go"], { agent: { snapshots: true } });
    await lab.waitForEvent(id, "tool_result");
    const { client } = lab.server;
    await client.call("sayToRun", { run: id, text: "text one", way: "after-turn" });
    const { sandbox } = await client.call("inspectRun", { run: id });
    await lab.server.sh(sandbox ?? "", "touch go");
    // The server looks at what waits with each of them.
    for (let more = 0; more < 20; more += 1) await client.call("sayToRun", { run: id, text: `text two ${more}`, way: "after-turn" });
    await lab.ended(id);
    const said = (await lab.events(id)).flatMap((event) => (event.type === "message" && event.from === "agent" ? [event.text] : []));
    const words = said.filter((text) => !text.startsWith("heard"));
    expect(words.filter((text) => text === "one")).toHaveLength(1);
    expect(new Set(said).size).toBe(said.length);
  });

  test("POL-1: is refused what the policy denies, and asks a person where the policy says so", async () => {
    const { id } = await lab.begin(["call sudo reboot", "call curl http://example.com", "text on"], { level: 1 });
    const waiting = await lab.waitForEvent(id, "waiting");
    expect(waiting).toMatchObject({ for: "person" });
    expect(await lab.until(id, ({ activity }) => activity === "person")).toMatchObject({ state: "running" });
    const { client } = lab.server;
    const { approvals } = await client.call("listApprovals", {});
    expect(approvals).toMatchObject([{ target: expect.stringContaining("curl") }]);
    await client.call("answerApproval", { approval: approvals[0]?.id ?? "", answer: "deny", approver: lab.server.approver() });
    await lab.ended(id);
    const results = (await lab.events(id)).flatMap((event) => (event.type === "tool_result" ? [event] : []));
    expect(results).toMatchObject([
      { ok: false, output: expect.stringContaining("denies") },
      { ok: false, output: expect.stringContaining("said no") },
    ]);
  });

  test("AGT-5: that runs out of time or of steps ends with the cause, and its work is kept", async () => {
    const late = await lab.begin(["call echo work > work.txt", "hold never"], { timeoutMs: 4_000 });
    const many = await lab.begin(["call echo 1 > one.txt", "call echo 2", "call echo 3 > three.txt"], { agent: { steps: 1 } });
    expect(await lab.ended(late.id)).toMatchObject({ state: "failed", outcome: "timeout" });
    expect(await lab.ended(many.id)).toMatchObject({ state: "failed", outcome: "failed", reason: "It used its 1 steps." });
    for (const { id } of [late, many]) {
      const { experiment } = await lab.server.client.call("inspectRun", { run: id });
      const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: experiment ?? "" });
      expect(attempts).toMatchObject([{ state: "failed", diff: { files: 1 } }]);
      expect(attempts[0]?.snapshot).not.toBe(null);
    }
  });

  test("AGT-2: whose agent dies, floods or talks nonsense ends with a cause, and the server is unharmed", async () => {
    const dead = await lab.begin(["call echo work > work.txt", "exit 7"], { agent: { guardian: "off" } });
    const flood = await lab.begin(["flood 50000000", "raw ", "text after the flood"]);
    const nonsense = await lab.begin([
      'raw {"type":',
      "raw [1,2]",
      'raw {"type":"assistant","message":7}',
      'raw {"type":"user","uuid":{}}',
      "text fine",
    ]);
    expect(await lab.ended(dead.id)).toMatchObject({ outcome: "failed", reason: "Claude Code ended with 7." });
    expect(await lab.ended(flood.id)).toMatchObject({ outcome: "done" });
    expect(await lab.ended(nonsense.id)).toMatchObject({ outcome: "done" });
    const raw = (await lab.events(nonsense.id)).flatMap((event) => (event.type === "raw" ? [event.text] : []));
    expect(raw).toEqual(['{"type":', "[1,2]"]);
    expect((await lab.events(flood.id)).some((event) => event.type === "message" && event.text === "after the flood")).toBe(true);
  });

  test("AGT-1: an agent that is not there, one without a login, a budget of nothing, and a check that can't run are told before anything starts", async () => {
    const before = await lab.server.client.call("listRuns", { all: true });
    await expect(lab.begin(["text x"], { agent: { agent: "no-such" } })).rejects.toMatchObject({ code: "agent_missing" });
    await expect(lab.begin(["text x"], { agent: { agent: "loginless" } })).rejects.toMatchObject({
      code: "agent_login",
      message: "loginless has no login here.",
    });
    await expect(lab.begin(["text x"], { checks: ["true", "no-such-program --all"] })).rejects.toMatchObject({
      code: "invalid_input",
      message: "The check `no-such-program --all` can't run: there is no program no-such-program on your PATH.",
    });
    await expect(lab.begin(["text x"], { agent: { budget: 0 } })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(lab.begin([" "])).rejects.toMatchObject({ code: "invalid_input" });
    expect(await lab.server.client.call("listRuns", { all: true })).toEqual(before);
  });
});

describe("a run among others, and from inside", needs("root", "curl"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open();
    const git = (...args: string[]): void =>
      void execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: lab.server.project });
    git("add", "-A");
    git("commit", "-qm", "first");
    git("init", "-q", "--bare", join(lab.server.place, "remote.git"));
    git("remote", "add", "origin", join(lab.server.place, "remote.git"));
  });
  afterAll(async () => lab?.remove());

  test("EXP-1: agents, models, prompts and commands compete, and one of them wins", async () => {
    const { client, project } = lab.server;
    const started = await client.call("startExperiment", {
      project,
      attempts: [
        { name: "agent", agent: { task: "call echo right > answer.txt", model: "small" } },
        { name: "other", agent: { task: "call echo wrong > answer.txt", model: "large" } },
        { name: "command", command: "exit 1" },
      ],
      checks: ["grep -q right answer.txt"],
      env: { PATH: process.env["PATH"] ?? "" },
    });
    const ended = await eventually(
      () => client.call("inspectExperiment", { experiment: started.id }),
      ({ state }) => state === "done",
      30_000,
    );
    expect(ended).toMatchObject({
      winner: 1,
      attempts: [{ state: "done" }, { checked: { passed: false } }, { state: "failed", run: null }],
    });
    const states = ended.attempts.map(async ({ run }) => (run == null ? null : (await lab.ended(run)).state));
    expect(await Promise.all(states)).toEqual(["completed", "failed", null]);
  });

  test("PROM-7: whose pull request fails ends failed, and its work is kept", async () => {
    const { id } = await lab.begin(["call echo right > answer.txt"], {
      checks: ["grep -q right answer.txt"],
      promote: true,
      branch: { push: "origin", pullRequest: true },
    });
    const run = await lab.ended(id);
    expect(run).toMatchObject({ state: "failed", outcome: "failed", reason: expect.stringContaining("could not be promoted") });
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: run.experiment ?? "" });
    expect(attempts).toMatchObject([{ state: "done", checked: { passed: true }, snapshot: run.snapshot }]);
    expect((await lab.server.sh(attempts[0]?.sandbox ?? "", "cat answer.txt")).stdout).toBe("right\n");
  });

  test("AGT-7: its sandbox tells events and its end by plain HTTP, and fetches messages, each once", async () => {
    const { client } = lab.server;
    const { id } = await lab.begin(["call touch ready", "hold never"]);
    const sandbox = (await lab.until(id, ({ steps }) => steps === 1)).sandbox ?? "";
    const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
      const data = body === undefined ? "" : ` -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
      const { stdout } = await lab.server.sh(sandbox, `curl -sS -X ${method} http://127.0.0.1:4097/sandbox/${sandbox}/${path}${data}`);
      return JSON.parse(stdout);
    };
    expect(await ask("GET", "run/status")).toMatchObject({ task: "call touch ready\nhold never", state: "running" });
    expect(await ask("POST", "events", { events: [{ type: "thinking", text: "hm" }] })).toMatchObject({ accepted: 1 });
    expect(await lab.waitForEvent(id, "thinking")).toMatchObject({ text: "hm" });
    expect(await ask("PUT", "run/status", { status: "failed", text: "It is too hard." })).toMatchObject({ id });
    expect(await lab.ended(id)).toMatchObject({ outcome: "failed", reason: "It is too hard." });
    expect(await client.call("listRunMessages", { run: id })).toMatchObject({ messages: [{ state: "delivered" }] });
  });
});

describe("a run that is looked after", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open();
  });
  afterAll(async () => lab?.remove());

  test("AGT-6: is remembered as a conversation that can be read within a budget, and searched", async () => {
    const { id } = await lab.begin(["text The parser drops empty lines", "call echo found it", "text done"]);
    await lab.ended(id);
    const { client } = lab.server;
    const { entries } = await client.call("readContext", { run: id });
    expect(entries.map(({ role }) => role)).toEqual(expect.arrayContaining(["task", "agent", "tool"]));
    const { hits } = await client.call("searchConversations", { query: "parser empty lines" });
    expect(hits[0]).toMatchObject({ run: id, excerpt: expect.stringContaining("parser") });
  });

  test("SNAP-5: keeps a snapshot before what may destroy work, and goes on from there after a rollback", async () => {
    const { id } = await lab.begin(["call echo 1 > kept.txt", "call git checkout -- . ; echo 2 > later.txt", "hold never"]);
    const { client } = lab.server;
    await lab.until(id, ({ steps }) => steps === 2);
    await lab.waitForEvent(id, "tool_result", ({ call }) => call.endsWith("-2"));
    const sandbox = (await client.call("inspectRun", { run: id })).sandbox ?? "";
    const { snapshots } = await client.call("listSnapshots", { sandbox });
    expect(snapshots).toHaveLength(1);
    await client.call("rollback", { sandbox, snapshot: snapshots[0]?.id ?? "" });
    expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 1, state: "completed" });
    expect((await lab.server.sh(sandbox, "ls")).stdout.split("\n")).toEqual(["hello.txt", "kept.txt", "node_modules", ""]);
    const { messages } = await client.call("listRunMessages", { run: id });
    expect(messages).toMatchObject([
      { from: "task", state: "delivered" },
      { text: expect.stringContaining("brought back"), state: "delivered" },
    ]);
  });

  test("GRD-2: is told by the guardian when it repeats itself without effect, and the guardian can be switched off", async () => {
    const task = [...Array.from({ length: 12 }, () => "call cat no-such-file"), "hold go", "text on"];
    const watched = await lab.begin(task);
    const free = await lab.begin(task, { agent: { guardian: "off" } });
    expect(await lab.waitForEvent(watched.id, "guardian")).toMatchObject({ step: "message" });
    await lab.until(free.id, ({ steps }) => steps === 12);
    for (const { id } of [watched, free]) {
      const { sandbox } = await lab.server.client.call("inspectRun", { run: id });
      await lab.server.sh(sandbox ?? "", "touch go");
      await lab.ended(id);
    }
    expect((await lab.events(free.id)).filter(({ type }) => type === "guardian")).toEqual([]);
    const { messages } = await lab.server.client.call("listRunMessages", { run: watched.id });
    expect(messages.filter(({ from }) => from === "guardian")).toMatchObject([{ state: "delivered" }]);
    const { records } = await lab.server.client.call("listAudit", { limit: 1000 });
    expect(records.some(({ action }) => action === "guardian.message")).toBe(true);
  });

  test.each(["run.replaced", "run.again"])(
    "GRD-3: whose agent is replaced goes on with the next one, also if the server dies at %s",
    async (point) => {
      const { server } = lab;
      const { id } = await lab.begin(["call echo 1 > kept.txt", "call git checkout -- .", "hold never"]);
      await lab.waitForEvent(id, "tool_result", ({ call }) => call.endsWith("-2"));
      const sandbox = (await server.client.call("inspectRun", { run: id })).sandbox ?? "";
      const { snapshots } = await server.client.call("listSnapshots", { sandbox });
      await server.dieAt(point, async () => {
        await server.client.call("rollback", { sandbox, snapshot: snapshots[0]?.id ?? "" });
        await lab.ended(id);
      });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 1 });
    },
  );
});

describe("a server that is killed while an agent works", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    lab = await RunLab.open();
  });
  afterAll(async () => lab?.remove());

  const POINTS = ["run.placed", "run.chosen", "run.started", "run.heard", "run.written", "run.message", "run.ended"];
  test.each(POINTS)("AGT-7: at %s loses nothing of the run and repeats nothing of it", async (point) => {
    const { server } = lab;
    let id = "";
    await server.dieAt(point, async () => {
      ({ id } = await lab.begin(["call echo 1 >> steps.txt", "call echo 2 >> steps.txt", "text three"], {
        checks: ["test $(wc -l < steps.txt) = 2"],
      }));
      await lab.ended(id);
    });
    const run = id === "" ? (await server.client.call("listRuns", {})).runs[0] : { id };
    expect(await lab.ended(run?.id ?? "")).toMatchObject({ state: "completed", outcome: "done", steps: 2 });
    const events = await lab.events(run?.id ?? "");
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const calls = events.flatMap((event) => (event.type === "tool_call" ? [JSON.stringify(event.input)] : []));
    expect(calls).toEqual(['{"command":"echo 1 >> steps.txt"}', '{"command":"echo 2 >> steps.txt"}']);
    expect(events.filter(({ type }) => type === "finished")).toHaveLength(1);
    const { messages } = await server.client.call("listRunMessages", { run: run?.id ?? "" });
    expect(messages).toMatchObject([{ from: "task", state: "delivered" }]);
  });

  test("AGT-7: lets it go on meanwhile, and a message that was kept reaches it from the next server", async () => {
    const { server } = lab;
    const { id } = await lab.begin(["call touch ready", "hold go", "call echo after > after.txt"]);
    await lab.waitForEvent(id, "tool_result");
    const sandbox = (await lab.until(id, ({ steps }) => steps === 1)).sandbox ?? "";
    await server.dieAt("run.said", () => server.client.call("sayToRun", { run: id, text: "remember" }));
    await server.sh(sandbox, "touch go");
    expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 2 });
    const { messages } = await server.client.call("listRunMessages", { run: id });
    expect(messages).toMatchObject([{ state: "delivered" }, { text: "remember", state: "delivered" }]);
    expect((await lab.events(id)).filter((event) => event.type === "message" && event.text === "heard: remember")).toHaveLength(1);
  });

  test("AGT-7: lets an agent end alone, and the next server tells all of it", async () => {
    const { server } = lab;
    const { id } = await lab.begin(["call touch ready", "hold go", "text the end"], { checks: ["test -f ready"] });
    await lab.waitForEvent(id, "tool_result");
    const sandbox = (await lab.until(id, ({ steps }) => steps === 1)).sandbox ?? "";
    await server.client.call("runCommand", { sandbox, command: ["/bin/sh", "-c", "sleep 1; touch go"], background: true });
    await server.kill();
    await server.up();
    expect(await lab.ended(id)).toMatchObject({ state: "completed", outcome: "done" });
    expect((await lab.events(id)).some((event) => event.type === "message" && event.text === "the end")).toBe(true);
  });
});
