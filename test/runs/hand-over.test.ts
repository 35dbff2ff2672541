/** AGT-6: another agent takes over a run: it gets the files, and what was said and done, within a budget of tokens. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const OTHER = { agent: { agent: "other" } };
const FIRST = ["text The parser drops empty lines", "call echo half > work.txt", "text I stop here"];

describe("a run that is handed over", needs("root", "curl"), () => {
  let lab: RunLab;
  let model: ScriptedModel;
  beforeAll(async () => {
    model = await ScriptedModel.open({ short: [{ text: "All steps found nothing." }] });
    lab = await RunLab.open({
      models: {
        anthropic: { url: "http://127.0.0.1:9", secret: "anthropic" },
        summaries: { url: `${model.url}/v1`, shape: "openai", secret: "short" },
      },
      memory: { summaries: { provider: "summaries", model: "short" } },
      // It keeps what it is given.
      agents: { other: { protocol: "command", command: "cat > told.txt; echo I go on" } },
    });
    viv(lab.server, ["secret", "set", "short", "--host", new URL(model.url).host, "--all-projects"], { input: "key\n" });
  });
  afterAll(async () => {
    model?.close();
    await lab?.remove();
  });

  const file = async (run: string, path: string): Promise<string> => {
    const { sandbox } = await lab.server.client.call("inspectRun", { run });
    return (await lab.server.sh(sandbox ?? "", `cat ${path}`)).stdout;
  };

  test("AGT-6: gives another agent its files and its conversation, and what it was told is handed on in turn", async () => {
    const { id: first } = await lab.begin(FIRST);
    await lab.ended(first);
    const { id: second } = await lab.begin(["Go on, and fix the rest."], { ...OTHER, from: first });
    expect(await lab.ended(second)).toMatchObject({ outcome: "done", agent: "other", from: first });
    const events = await lab.events(second);
    expect(events).toContainEqual(expect.objectContaining({ type: "command_output", stream: "stdout", text: "I go on\n" }));
    const told = await file(second, "told.txt");
    expect(await file(second, "work.txt")).toBe("half\n");
    expect(told).toMatch(/^You take over the work of another agent \(claude, run \w+\)\. .* It ended: done/);
    for (const known of [`[task] ${FIRST.join("\n")}`, "[agent] The parser drops empty lines", "echo half > work.txt"])
      expect(told).toContain(known);
    expect(told.endsWith("Your own task:\n\nGo on, and fix the rest.")).toBe(true);
    const { entries } = await lab.server.client.call("readContext", { run: second });
    expect(entries.filter(({ kind }) => kind === "summary")).toMatchObject([
      { pinned: true, text: expect.stringContaining("empty lines") },
    ]);
    const { id: third } = await lab.begin(["And on."], { ...OTHER, from: second });
    await lab.ended(third);
    expect(await file(third, "told.txt")).toContain("The parser drops empty lines");
    expect(await file(third, "told.txt")).toContain("[task] Go on, and fix the rest.");
  });

  test("AGT-6: keeps to the budget, with the task pinned and older parts summarised by the configured model, which the new run pays", async () => {
    const long = Array.from({ length: 60 }, (_, index) => `text Step ${index}: ${"looked at a file and found nothing. ".repeat(4)}`);
    const { id: first } = await lab.begin(["text Do not forget: use tabs.", ...long]);
    await lab.ended(first);
    const { id: second } = await lab.begin(["Go on."], { agent: { agent: "other", contextTokens: 600 }, from: first });
    expect((await lab.ended(second)).cost).toBeGreaterThan(0);
    expect(JSON.stringify(model.last.body)).toContain("Step 3:");
    const told = await file(second, "told.txt");
    expect(told).toContain("All steps found nothing.");
    expect(told.length).toBeLessThan(600 * 4 + 800);
    expect(told).toContain("[task] text Do not forget: use tabs.");
    expect(told).toContain("Step 59");
    model.script("short", () => ({ failures: [{ status: 500 }] }));
    const { id: third } = await lab.begin(["Go on."], { agent: { agent: "other", contextTokens: 600 }, from: first });
    expect(await lab.ended(third)).toMatchObject({ outcome: "done", cost: 0 });
    expect(await file(third, "told.txt")).toContain("In short, records");
    await expect(lab.begin(["x"], { agent: { agent: "other", contextTokens: 1 }, from: first })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  test("AGT-6: is taken over while it works, as it is at that moment, and is not disturbed", async () => {
    const { id: first } = await lab.begin(["call echo early > work.txt", "hold go", "call printf made%s later"]);
    await lab.waitForEvent(first, "tool_result");
    const { id: second } = await lab.begin(["keep told.txt", "call touch ready", "hold go"], { from: first });
    await lab.waitForEvent(second, "tool_result");
    const { sandbox } = await lab.server.client.call("inspectRun", { run: first });
    await lab.server.sh(sandbox ?? "", "touch go");
    expect(await lab.ended(first)).toMatchObject({ outcome: "done", steps: 2 });
    const inside = (await lab.server.client.call("inspectRun", { run: second })).sandbox ?? "";
    const read = async (query: string): Promise<Record<string, unknown>> => {
      const { stdout } = await lab.server.sh(inside, `curl -sS 'http://127.0.0.1:4097/sandbox/self/run/conversation?${query}'`);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const before = await read("of=before");
    expect(before).toMatchObject({ run: first, provenance: "record" });
    expect(JSON.stringify(before)).toContain("echo early");
    // What the other run did afterwards was not handed over.
    expect(JSON.stringify(before)).not.toContain("madelater");
    expect(JSON.stringify((await lab.server.client.call("readContext", { run: first, search: "madelater" })).hits)).toContain("madelater");
    expect(await read("of=before&search=madelater")).toMatchObject({ hits: [] });
    expect(JSON.stringify(await read("of=self"))).toContain("You take over the work");
    await lab.server.sh(inside, "touch go");
    await lab.ended(second);
    expect(await file(second, "told.txt")).toContain("It was still at work when these files were copied.");
  });

  test("AGT-6: is handed over once where the server dies before the agent begins", async () => {
    const { server } = lab;
    const { id: first } = await lab.begin(FIRST);
    await lab.ended(first);
    let id = "";
    await server.dieAt("run.placed", async () => {
      ({ id } = await lab.begin(["Go on."], { ...OTHER, from: first }));
      await lab.ended(id);
    });
    const second = id === "" ? ((await server.client.call("listRuns", {})).runs[0]?.id ?? "") : id;
    expect(await lab.ended(second)).toMatchObject({ outcome: "done", from: first });
    const { entries } = await server.client.call("readContext", { run: second });
    expect(entries.filter(({ kind }) => kind === "summary")).toHaveLength(1);
    expect((await file(second, "told.txt")).split("You take over")).toHaveLength(2);
  });

  test("AGT-6: is named by the beginning of its id on the command line, and several agents may take it over", async () => {
    const { server } = lab;
    const at = { cwd: server.project };
    const { id: first } = await lab.begin(FIRST);
    await lab.ended(first);
    const task = viv(server, ["task", "Go on.", "--from", first.slice(0, 14), "--agent", "other", "--json"], at);
    expect(task.code, task.err).toBe(0);
    const { id } = JSON.parse(task.out) as { id: string };
    expect(await server.client.call("inspectRun", { run: id })).toMatchObject({ from: first });
    const tried = viv(server, ["try", "Go on.", "--from", first, "--agent", "other,claude", "--json"], at);
    const { attempts } = JSON.parse(tried.out) as { attempts: { run: string }[] };
    for (const { run } of attempts) expect(await server.client.call("inspectRun", { run })).toMatchObject({ from: first });
    expect(viv(server, ["task", "x", "--context", "500"], at)).toMatchObject({ code: 2, err: expect.stringContaining("--from") as string });
  });

  test("AGT-6: that does not exist, or whose sandbox is gone, is told before anything starts", async () => {
    const { server } = lab;
    const { runs: known } = await server.client.call("listRuns", { all: true });
    await expect(lab.begin(["x"], { from: newId("run") })).rejects.toMatchObject({ code: "not_found" });
    const { id: first, sandbox } = await lab.ended((await lab.begin(FIRST)).id);
    await server.client.call("removeSandbox", { sandbox: sandbox ?? "" });
    await expect(lab.begin(["x"], { from: first })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("the files that it left") as string,
    });
    const { runs } = await server.client.call("listRuns", { all: true });
    expect(runs.length).toBe(known.length + 1);
  });
});
