/** A model that can't be had is told in one sentence, before anything starts. */
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { AutomationLab } from "../support/automations.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

const SENTENCE = "anthropic has no model nonsense: model: nonsense";
const OFFERED = ["claude-opus-5", "claude-sonnet-5"];
const REMEDY = "such as claude-sonnet-5, claude-opus-5";

describe("a model that the model API does not have", needs("root"), () => {
  let model: ScriptedModel;
  let server: TestServer;
  let lab: RunLab;

  beforeAll(async () => {
    model = await ScriptedModel.open();
    server = await TestServer.start({
      config: {
        models: { anthropic: { url: model.url, secret: "anthropic" } },
        prices: { "my-own": { input: 0, output: 0 } },
        agents: { line: { protocol: "command", command: ["sh", "-c", "{task}"] } },
      },
    });
    model.offered = OFFERED;
    lab = RunLab.on(server);
    const words = ["secret", "set", "anthropic", "--host", new URL(model.url).host, "--all-projects"];
    expect(viv(server, words, { input: "the-real-key\n" }).code).toBe(0);
  });
  afterAll(async () => {
    await server?.remove();
    model?.close();
  });
  afterEach(() => {
    model.received.length = 0;
    model.offered = OFFERED;
  });

  /** Beside this process, which is the model API. */
  async function call(...words: string[]): Promise<{ code: number; out: string; err: string }> {
    const child = startViv(server, words, { cwd: server.project });
    child.stdin.end();
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close") as Promise<[number]>]);
    return { code, out, err };
  }
  const made = async (): Promise<number> => {
    const { client } = server;
    const [{ runs }, { sandboxes }, { experiments }] = await Promise.all([
      client.call("listRuns", { all: true }),
      client.call("listSandboxes", {}),
      client.call("listExperiments", { all: true }),
    ]);
    return runs.length + sandboxes.length + experiments.length;
  };

  test.each([
    ["viv task", ["task", "text hello", "--model", "nonsense"]],
    ["viv task for its reviewer", ["task", "text hello", "--with", "reviewer:claude:nonsense"]],
    ["viv try", ["try", "text hello", "--agent", "claude,claude:nonsense", "--check", "true"]],
  ])("AGT-1: is refused by %s before there is a sandbox or a run", async (_name, words) => {
    const before = await made();
    const { code, out, err } = await call(...words);
    expect([code, out, err]).toEqual([2, "", expect.stringContaining(SENTENCE)]);
    expect(err).toContain(REMEDY);
    expect(await made()).toBe(before);
    expect(model.received.map(({ method }) => method)).toEqual(["GET", "GET"]);
    expect(model.received[0]?.headers["x-api-key"]).toBe("the-real-key");
  });

  test("AGT-1: is refused by the API with a code of its own", async () => {
    const before = await made();
    await expect(lab.begin(["text hello"], { agent: { model: "nonsense" } })).rejects.toMatchObject({ code: "model_refused", status: 400 });
    expect(await made()).toBe(before);
  });

  test("AGT-1: makes a firing of an automation fail, and starts nothing", async () => {
    const automations = new AutomationLab(server);
    await automations.add("night", { task: "text hello", model: "nonsense", checks: ["true"] });
    const before = await made();
    expect(await automations.run("night")).toMatchObject({ state: "failed", reason: expect.stringContaining(SENTENCE) as string });
    expect(await made()).toBe(before);
  });

  test("is not asked about twice within minutes once it is known to be there, and a price says that it is", async () => {
    for (const name of ["claude-opus-5", "claude-opus-5", "my-own-7"]) {
      const { id } = await lab.begin(["text hello"], { agent: { model: name } });
      expect(await lab.ended(id)).toMatchObject({ outcome: "done", model: name });
    }
    expect(model.received.map(({ path }) => path)).toEqual(["/v1/models/claude-opus-5"]);
  });

  test("is left to the first request where the API does not say", async () => {
    model.offered = [];
    const { id } = await lab.begin(["text hello"], { agent: { model: "unheard-of" } });
    expect(await lab.ended(id)).toMatchObject({ outcome: "done" });
  });

  test("is refused where the agent of the config takes none", async () => {
    const { code, err } = await call("task", "true", "--agent", "line", "--model", "any");
    expect([code, err]).toEqual([2, expect.stringContaining("No model can be named to line.")]);
  });
});
