/** Every real agent as a run, in a sandbox, with the scripted model behind the gateway: one table of what happens to a run. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DENIED, OWN_FILES, OWN_FOLDER, WIDEN } from "../support/agents/own-configuration.ts";
import { REAL_AGENTS, type RealAgentCase } from "../support/agents/real-agent-cases.ts";
import { RealRunLab } from "../support/agents/real-run-lab.ts";
import { realAgent } from "../support/real-agents.ts";
import type { Step } from "../support/scripted-model.ts";
import { eventually } from "../support/server.ts";
import { missing, needs } from "../support/skip.ts";

/** Long enough for everything that is done to an agent meanwhile. */
const LONG = "touch begun; while :; do sleep 1; done";
const DONE: Step = { text: "Done." };
/** Some agents warn in their own words first, as of a model that they do not know. */
const lastLine = ({ text }: { readonly text: string }): string | undefined => text.split("\n").at(-1);
const isBuiltIn = ({ configured }: RealAgentCase): boolean => configured === undefined;
/** Requests of an agent that tries again and again would be more. */
const FEW = 8;

interface Scenario {
  readonly name: string;
  /** Whether this agent can; what it can't do instead is another row. */
  readonly of?: (agent: RealAgentCase) => boolean;
  readonly play: (lab: RealRunLab, agent: RealAgentCase) => Promise<void>;
}

const SCENARIOS: readonly Scenario[] = [
  {
    name: "AGT-1: writes a file, runs a command, is denied one, and ends well",
    async play(lab, { agent, write, run, endsWhenDenied }) {
      const [denied, allowed] = [{ calls: [run("sudo reboot")] }, { calls: [run("cat made.txt; id -u")] }];
      const rest = endsWhenDenied !== undefined ? [allowed, { text: "Done.", ...denied }] : [denied, allowed, DONE];
      const { id } = await lab.play([
        { thinking: "Let me see.", text: "I write.", calls: [write(`${lab.server.project}/made.txt`)] },
        ...rest,
      ]);
      expect(await lab.ended(id)).toMatchObject({ state: "completed", outcome: "done", steps: 3, agent, reason: null });
      expect((await lab.list(id, "thinking")).map(lastLine)).toContain("Let me see.");
      expect((await lab.list(id, "tool_call")).map(({ kind }) => kind)).toHaveLength(3);
      expect((await lab.list(id, "tool_result")).filter(({ ok }) => ok)).toHaveLength(2);
      expect((await lab.list(id, "finished")).map(lastLine)).toEqual(endsWhenDenied === "silent" ? [] : ["Done."]);
      expect((await lab.list(id, "file_change")).flatMap(({ paths }) => paths)).toContain("made.txt");
      expect((await lab.until(id, () => true)).cost).toBeGreaterThan(0);
      expect(JSON.stringify(lab.requests.at(-1)?.body)).toMatch(/made\\+n0/);
      expect(JSON.stringify(lab.requests[0]?.body)).toContain("yolo 3");
    },
  },
  {
    name: "POL-1: asks, and acts once a person has said yes",
    of: ({ abilities }) => abilities.asks,
    async play(lab, { run }) {
      const { id } = await lab.play([{ calls: [run("chmod 600 hello.txt && echo did it")] }, DONE], { level: 1 });
      expect(await lab.waitForEvent(id, "waiting")).toMatchObject({ for: "person" });
      const { client } = lab.server;
      const { approvals } = await client.call("listApprovals", {});
      const asked = approvals.find(({ target }) => target.includes("chmod 600"));
      await client.call("answerApproval", { approval: asked?.id ?? "", answer: "once", approver: lab.server.approver() });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
      expect((await lab.list(id, "tool_result")).map(({ ok }) => ok)).toEqual([true]);
      expect(JSON.stringify(lab.requests.at(-1)?.body)).toContain("did it");
    },
  },
  {
    name: "POL-1: waits for a person while no server is there, and goes on",
    // Seen over the plugin, whose questions are requests of their own; the others wait on their input.
    of: ({ agent }) => agent === "opencode",
    async play(lab, { run }) {
      const { server } = lab;
      const { id } = await lab.play([{ calls: [run("chmod 600 nothing || true")] }, DONE], { level: 1 });
      await lab.waitForEvent(id, "waiting", (event) => event.for === "person");
      await server.kill();
      await server.up();
      const { approvals } = await eventually(
        () => server.client.call("listApprovals", {}),
        (all) => all.approvals.some(({ target }) => target.includes("chmod 600 nothing")),
      );
      const approval = approvals.find(({ target }) => target.includes("chmod 600 nothing"))?.id ?? "";
      await server.client.call("answerApproval", { approval, answer: "once", approver: server.approver() });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
      const events = await lab.events(id);
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
      expect(events.some((event) => event.type === "resumed" && event.for === "person")).toBe(true);
    },
  },
  {
    name: "COORD-6: leaves a task by a tool of Vivarium's, which it is offered once",
    of: ({ tool }) => tool !== undefined,
    async play(lab, { tool }) {
      const { namespace, name = "" } = tool?.("create_task") ?? {};
      const named = namespace === undefined ? { name } : { namespace, name };
      const { id } = await lab.play([{ calls: [{ ...named, input: { title: "Later" } }] }, DONE]);
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
      const [result] = await lab.list(id, "tool_result");
      expect(result).toMatchObject({ ok: true, output: expect.stringContaining('"created":true') as string });
      const offered = namespace === undefined ? name : `${namespace}.${name}`;
      expect(lab.requests[0]?.tools.filter((each) => each.endsWith("create_task"))).toEqual([offered]);
      const { tasks } = await lab.server.client.call("listBacklog", { project: lab.server.project });
      expect(tasks.map(({ title }) => title)).toContain("Later");
    },
  },
  {
    name: "AGT-3: has what it is told before its next request to the model",
    of: ({ abilities }) => abilities.messages === "tool",
    play: (lab, agent) => told(lab, agent, 1),
  },
  {
    name: "AGT-3: has what it is told when its turn has ended",
    of: ({ abilities }) => abilities.messages === "turn",
    play: (lab, agent) => told(lab, agent, 2),
  },
  {
    name: "AGT-3: is interrupted, and goes on with what it is told next",
    of: ({ abilities }) => abilities.interrupt,
    async play(lab, { run }) {
      const { id } = await lab.play([{ calls: [run(LONG)] }, { text: "Left." }]);
      await lab.untilMade(id, "begun");
      await lab.server.client.call("sayToRun", { run: id, text: "Leave that.", way: "after-turn" });
      await lab.server.client.call("interruptRun", { run: id });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
      expect((await lab.list(id, "finished")).map(lastLine)).toEqual(["Left."]);
      expect(JSON.stringify(lab.requests.at(-1)?.body)).toContain("Leave that.");
    },
  },
  {
    name: "POL-10: ends when its budget is used up, told as that, without trying again and again",
    async play(lab, { run }) {
      const { id } = await lab.play(
        Array.from({ length: 2 * FEW }, (_, index) => ({ calls: [run(`echo ${index} >> work.txt`)] })),
        { agent: { budget: 0.005 } },
      );
      const ended = await lab.ended(id);
      expect(ended).toMatchObject({ state: "failed", outcome: "failed", reason: expect.stringMatching(/budget/i) as string });
      expect(ended.steps).toBeLessThan(FEW);
      expect(lab.requests.length).toBeLessThan(FEW);
      const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
      expect(attempts).toMatchObject([{ diff: { files: 1 }, snapshot: expect.any(String) as string }]);
    },
  },
  {
    name: "AGT-1: ends at once when the model API refuses the model, told in the API's words",
    of: isBuiltIn,
    async play(lab) {
      const words = "The model demo does not exist or you do not have access to it.";
      const { id } = await lab.play(() => ({ text: "", failures: [{ status: 404, message: words }] }));
      expect(await lab.ended(id)).toMatchObject({
        state: "failed",
        outcome: "failed",
        steps: 0,
        reason: expect.stringMatching(new RegExp(`^(anthropic|openai|gemini) refused the model demo: ${words}$`)) as string,
      });
      expect(lab.requests).toHaveLength(1);
    },
  },
  {
    name: "AGT-4: ends at a rate limit where it is not to wait, with its work kept",
    of: isBuiltIn,
    async play(lab, { run }) {
      const failures = [{ status: 429, headers: { "retry-after": "60" } }];
      const { id } = await lab.play([{ calls: [run("echo one > one.txt")] }, { ...DONE, failures }], { agent: { rateLimit: "stop" } });
      const ended = await lab.ended(id);
      expect(ended).toMatchObject({ outcome: "failed", steps: 1, reason: expect.stringContaining("rate limit") as string });
      expect(lab.requests).toHaveLength(2);
      const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
      expect(attempts).toMatchObject([{ diff: { files: 1 }, snapshot: expect.any(String) as string }]);
    },
  },
  {
    name: "AGT-4: waits for a model API that answers 429 and 500, is shown to wait with the end of that, and goes on",
    async play(lab, { run }) {
      const failures = [{ status: 429, headers: { "retry-after": "1" } }, { status: 500 }];
      const { id } = await lab.play([{ calls: [run("echo one > one.txt")] }, { ...DONE, failures }]);
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
      expect((await lab.list(id, "finished")).map(({ text }) => text)).toEqual(["Done."]);
      const [limit] = (await lab.list(id, "waiting")).filter((event) => event.for === "rate_limit");
      const endsInMs = Date.parse(limit?.until ?? "") - Date.parse(limit?.at ?? "");
      expect(endsInMs).toBeGreaterThan(900);
      expect(endsInMs).toBeLessThanOrEqual(1000);
      expect(await lab.list(id, "resumed")).not.toEqual([]);
    },
  },
  {
    name: "AGT-2: that is killed ends with a cause, and its work is kept",
    async play(lab, { run }) {
      const { id } = await lab.play([{ calls: [run("echo work > work.txt")] }, { calls: [run(LONG)] }, DONE]);
      await lab.crash(await lab.untilMade(id, "begun"));
      const ended = await lab.ended(id);
      expect(ended).toMatchObject({ state: "failed", outcome: "failed", reason: expect.stringMatching(/ended with/) as string });
      const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
      expect(attempts).toMatchObject([{ diff: { files: 2 }, snapshot: expect.any(String) as string }]);
    },
  },
  {
    name: "GRD-3: that is killed is followed by another one, which knows the conversation and finds its configuration as it was given",
    of: isBuiltIn,
    async play(lab, { run, agent, abilities }) {
      const { client } = lab.server;
      const asks = [run(DENIED), run("echo harmless")];
      const { id } = await lab.play(
        ({ body, turn, tools }) => {
          if (tools.length === 0) return DONE;
          const isNext = /was started again|worked on this before you/.test(JSON.stringify(body));
          const next = isNext ? asks.shift() : undefined;
          if (next !== undefined) return { calls: [next] };
          return turn === 0 && asks.length === 2 ? { text: "I begin.", calls: [run(`${WIDEN}; ${LONG}`)] } : DONE;
        },
        { agent: { guardian: "full" } },
      );
      const sandbox = await lab.untilMade(id, "begun");
      const { conversation } = await lab.until(id, (now) => now.conversation !== null);
      await lab.crash(sandbox);
      const ended = await lab.ended(id);
      expect(ended).toMatchObject({ outcome: "done", restarts: 1 });
      if (abilities.resume) expect(ended.conversation).toBe(conversation);
      expect((await lab.list(id, "guardian")).map(({ step, detector }) => [step, detector])).toEqual([["restart", "death"]]);
      // What it was denied before it is denied still.
      const denied = (await lab.list(id, "tool_result")).filter(({ ok }) => !ok);
      expect(denied.length, agent).toBeGreaterThan(0);
      expect((await lab.server.sh(sandbox, "ls")).stdout.split("\n")).not.toContain("ran");
      const left = await lab.server.sh(
        sandbox,
        `${OWN_FOLDER}; ls ${OWN_FILES.map(([path]) => path).join(" ")}; grep -rl widened . || true`,
      );
      expect(left.stdout.split("\n").filter((line) => line.includes("extra"))).toEqual([]);
      expect(left.stdout).not.toMatch(/^\.\/.*(settings|config|opencode\.json|vivarium\.js|rules\.toml)/m);
      await client.call("removeSandbox", { sandbox });
    },
  },
  {
    name: "POL-1: that changes its own configuration and the machine's while it works is denied as before",
    of: isBuiltIn,
    async play(lab, { run }) {
      // Some agents read settings again when their files change, a moment later.
      const { id } = await lab.play([{ calls: [run(`${WIDEN}; sleep 2`)] }, { calls: [run("echo one")] }, { calls: [run(DENIED)] }, DONE]);
      const { sandbox, outcome } = await lab.ended(id);
      expect((await lab.server.sh(sandbox ?? "", "ls")).stdout.split("\n")).not.toContain("ran");
      expect(outcome).toBe("done");
      expect((await lab.list(id, "tool_result")).map(({ ok }) => ok)).toContain(false);
    },
  },
  {
    name: "AGT-7: works on while the server is killed, and nothing of it is lost or told twice",
    async play(lab, { run }) {
      const { id } = await lab.play([
        { calls: [run("touch begun; while ! test -e go; do sleep 0.2; done; echo one")] },
        { calls: [run("echo two")] },
        DONE,
      ]);
      const sandbox = await lab.untilMade(id, "begun");
      await lab.server.kill();
      await lab.server.up();
      await lab.server.sh(sandbox, "touch go");
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 2, restarts: 0 });
      const events = await lab.events(id);
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
      const heard = events.map(({ type }) => type).filter((type) => /^(?:started|tool_|finished)/.test(type));
      expect(heard.join(" ")).toBe("started tool_call tool_result tool_call tool_result finished");
    },
  },
  {
    name: "AGT-3: gets a message once that the server died over before it was written",
    // Whether a message was read can't be asked of the others.
    of: ({ agent }) => ["claude", "codex", "pi"].includes(agent),
    async play(lab, { run }) {
      const { server } = lab;
      const { id } = await lab.play([{ calls: [run("touch begun; while ! test -e go; do sleep 0.2; done")] }, DONE]);
      const sandbox = await lab.untilMade(id, "begun");
      await server.arm("run.message");
      await server.client.call("sayToRun", { run: id, text: "Use tabs." }).catch(() => undefined);
      await server.died();
      await server.up();
      await eventually(
        async () => (await server.client.call("listRunMessages", { run: id })).messages.map(({ state }) => state),
        (states) => states[1] === "sent",
      );
      await server.sh(sandbox, "touch go");
      expect(await lab.ended(id)).toMatchObject({ outcome: "done" });
      const { messages } = await server.client.call("listRunMessages", { run: id });
      expect(messages.map(({ state }) => state)).toEqual(["delivered", "delivered"]);
      expect(JSON.stringify(lab.requests.at(-1)?.body).split("Use tabs.")).toHaveLength(2);
    },
  },
  {
    name: "SNAP-5: goes on with its conversation after its sandbox was rolled back",
    of: ({ abilities }) => abilities.resume,
    async play(lab, { run }) {
      const { client } = lab.server;
      const steps: readonly Step[] = [{ text: "I begin.", calls: [run("echo kept > kept.txt")] }, { calls: [run(LONG)] }];
      const { id } = await lab.play(({ body, turn, tools }) =>
        JSON.stringify(body).includes("brought back") || tools.length === 0 ? DONE : (steps[turn] ?? DONE),
      );
      const sandbox = await lab.untilMade(id, "begun");
      const { conversation } = await lab.until(id, (now) => now.conversation !== null);
      const { id: snapshot } = await client.call("createSnapshot", { sandbox });
      await lab.server.sh(sandbox, "echo later > later.txt");
      await client.call("rollback", { sandbox, snapshot });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", restarts: 1, conversation });
      expect((await lab.server.sh(sandbox, "ls")).stdout.split("\n")).toEqual(["begun", "hello.txt", "kept.txt", ""]);
      const last = JSON.stringify(lab.requests.at(-1)?.body);
      for (const known of ["Do it.", "I begin.", "brought back"]) expect(last).toContain(known);
      const { messages } = await client.call("listRunMessages", { run: id });
      expect(messages.map(({ state }) => state)).toEqual(["delivered", "delivered"]);
    },
  },
  {
    name: "SNAP-5: gets its task again after its sandbox was rolled back, with what was said before",
    of: ({ abilities }) => !abilities.resume,
    async play(lab, { run }) {
      const { client } = lab.server;
      const steps: readonly Step[] = [{ text: "I begin.", calls: [run("echo kept > kept.txt")] }, { calls: [run(LONG)] }];
      const { id } = await lab.play(({ body, turn, tools }) =>
        JSON.stringify(body).includes("brought back") || tools.length === 0 ? DONE : (steps[turn] ?? DONE),
      );
      const sandbox = await lab.untilMade(id, "begun");
      const { conversation } = await lab.until(id, (now) => now.conversation !== null);
      const { id: snapshot } = await client.call("createSnapshot", { sandbox });
      await lab.server.sh(sandbox, "echo later > later.txt");
      await client.call("rollback", { sandbox, snapshot });
      const ended = await lab.ended(id);
      expect(ended).toMatchObject({ outcome: "done", restarts: 1 });
      expect(ended.conversation).not.toBe(conversation);
      expect((await lab.server.sh(sandbox, "ls")).stdout.split("\n")).toEqual(["begun", "hello.txt", "kept.txt", ""]);
      const last = JSON.stringify(lab.requests.at(-1)?.body);
      for (const known of ["Do it.", "I begin.", "echo kept > kept.txt", "brought back"]) expect(last).toContain(known);
      const { messages } = await client.call("listRunMessages", { run: id });
      expect(messages.map(({ state }) => state)).toEqual(["delivered"]);
    },
  },
];

/** Says something while a command runs; the agent ends as many turns as this. */
async function told(lab: RealRunLab, { run }: RealAgentCase, turns: number): Promise<void> {
  const { client } = lab.server;
  const { id } = await lab.play([
    { calls: [run("touch begun; while ! test -e go; do sleep 0.2; done; echo went")] },
    { text: "Done." },
    { text: "Done again." },
  ]);
  const sandbox = await lab.untilMade(id, "begun");
  const { id: message } = await client.call("sayToRun", { run: id, text: "Use tabs." });
  const state = async (): Promise<string | undefined> =>
    (await client.call("listRunMessages", { run: id })).messages.find((one) => one.id === message)?.state;
  // Not before it has it.
  expect(await eventually(state, (now) => now === (turns === 1 ? "sent" : "queued"))).toBe(turns === 1 ? "sent" : "queued");
  await lab.server.sh(sandbox, "touch go");
  expect(await lab.ended(id)).toMatchObject({ outcome: "done", steps: 1 });
  expect(await state()).toBe("delivered");
  expect(await lab.list(id, "finished")).toHaveLength(turns);
  const request = lab.requests.find(({ body }) => JSON.stringify(body).includes("Use tabs."));
  expect(request?.turn).toBe(turns);
}

const lacking = missing("root");
const programs = new Map(
  await Promise.all(REAL_AGENTS.map(async ({ agent, configured }) => [agent, await realAgent(configured?.installed ?? agent)] as const)),
);

for (const agent of REAL_AGENTS) {
  const { program, needed } = programs.get(agent.agent) ?? { program: "", needed: { skip: true } };
  describe(`${agent.agent} as a run`, lacking === undefined ? needed : needs("root"), () => {
    let lab: RealRunLab;
    beforeAll(async () => {
      const { configured } = agent;
      lab = await RealRunLab.with(agent.agent, program, configured && { [agent.agent]: configured.entry(program) });
    }, 60_000);
    afterAll(async () => lab?.remove());

    const rows = SCENARIOS.filter(({ name, of = () => true }) => of(agent) && (agent.only ?? /^/).test(name));
    test.each(rows)("$name", async ({ play }) => {
      await play(lab, agent);
      expect(lab.requests).not.toEqual([]);
    });
  });
}
