import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import type { ExecutionEvent } from "../../src/base/schema/notebook.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** A picture of one pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("IDE-1: code that runs piece by piece", needs("root", "jupyter"), () => {
  let server: TestServer;
  let box: string;
  const run = (code: string, more: object = {}): Promise<OutputOf<"executeCode">> =>
    server.client.call("executeCode", { sandbox: box, context: "main", code, ...more });

  beforeAll(async () => {
    server = await TestServer.start();
    box = (await server.create({ name: "notes" })).id;
  });
  afterAll(async () => server?.remove());

  test("keeps its variables, and each context has its own", async () => {
    expect(await run("x = 41; print('hello')")).toMatchObject({ state: "done", outputs: [{ kind: "stdout", text: "hello\n" }] });
    expect((await run("x + 1")).outputs).toEqual([{ kind: "result", data: { "text/plain": "42" } }]);
    expect(await run("x", { context: "other" })).toMatchObject({ state: "failed", outputs: [{ kind: "error", name: "NameError" }] });
    const { contexts } = await server.client.call("listContexts", { sandbox: box });
    expect(contexts.map(({ name }) => name).toSorted()).toEqual(["main", "other"]);
    await server.client.call("removeContext", { sandbox: box, context: "other" });
    expect((await server.client.call("listContexts", { sandbox: box })).contexts.length).toBe(1);
  });

  test("shows pictures, HTML and JSON, and works in the project", async () => {
    const code = `from IPython.display import display, HTML, JSON, Image
import base64, os
display(HTML("<b>bold</b>"), JSON({"a": [1]}))
print(os.getcwd())
Image(data=base64.b64decode("${PNG}"))`;
    const { outputs } = await run(code);
    const forms = outputs.flatMap((output) => ("data" in output ? [output.data] : []));
    expect(forms[0]).toMatchObject({ "text/html": "<b>bold</b>" });
    expect(forms[1]).toMatchObject({ "application/json": { a: [1] } });
    expect(forms[2]).toMatchObject({ "image/png": expect.stringContaining(PNG) });
    expect(outputs).toContainEqual({ kind: "stdout", text: `${server.project}\n` });
  });

  test("tells outputs while it runs, to each caller that listens, and blocks no other context", async () => {
    const { id, state } = await run("import time\nfor i in range(3):\n  print(i, flush=True)\n  time.sleep(0.2)", { background: true });
    expect(state).toBe("running");
    const listen = async (): Promise<ExecutionEvent[]> => {
      const heard: ExecutionEvent[] = [];
      for await (const event of server.client.executionEvents(box, id, new AbortController().signal)) heard.push(event);
      return heard;
    };
    const [one, other] = [listen(), listen()];
    expect(await run("1", { context: "beside" })).toMatchObject({ state: "done" });
    const [heard] = await Promise.all([one, other]);
    expect(await other).toEqual(heard);
    const printed = heard.flatMap((event) => (event.type === "output" && "text" in event.output ? [event.output.text] : []));
    expect(printed.join("")).toBe("0\n1\n2\n");
    expect(heard.at(-1)).toMatchObject({ type: "ended", execution: { state: "done" } });
    expect(await server.client.call("inspectExecution", { sandbox: box, execution: id })).toMatchObject({
      state: "done",
      endedAt: expect.any(String),
    });
  });

  test("is interrupted by a person or its time, and keeps its variables; a restart takes them away", async () => {
    await run("kept = 1");
    const { id } = await run("import time; print('on', flush=True); time.sleep(600)", { background: true });
    await eventually(
      () => server.client.call("inspectExecution", { sandbox: box, execution: id }),
      ({ outputs }) => outputs.length > 0,
    );
    await server.client.call("interruptContext", { sandbox: box, context: "main" });
    await eventually(
      () => server.client.call("inspectExecution", { sandbox: box, execution: id }),
      ({ state }) => state === "interrupted",
    );
    expect(await run("import time; time.sleep(600)", { timeout: 200 })).toMatchObject({ state: "interrupted" });
    expect((await run("kept")).outputs).toEqual([{ kind: "result", data: { "text/plain": "1" } }]);
    await server.client.call("restartContext", { sandbox: box, context: "main" });
    // Longer than a kernel goes without being asked whether it is still the same one.
    expect(await run("import time; time.sleep(4); kept")).toMatchObject({
      state: "failed",
      outputs: [{ kind: "error", name: "NameError" }],
    });
  });

  test("that ends its own kernel fails with the reason, and the next piece runs", async () => {
    const ended = await run("import os; os._exit(9)");
    expect(ended).toMatchObject({ state: "failed", reason: expect.stringContaining("kernel ended") });
    expect(await run("2 + 2")).toMatchObject({ state: "done" });
  });

  test("that prints without end is cut and counted, and stays answerable", async () => {
    const { outputs, droppedBytes, state } = await run("for i in range(30): print('x' * 1_000_000)");
    expect(state).toBe("done");
    expect(droppedBytes).toBeGreaterThan(10_000_000);
    expect(JSON.stringify(outputs).length).toBeLessThan(9_000_000);
  });

  test("goes on while no server is there, with its variables", async () => {
    await run("before = 'the kill'");
    await server.kill();
    await server.up();
    expect((await run("before")).outputs).toEqual([{ kind: "result", data: { "text/plain": "'the kill'" } }]);
    await expect(
      server.client.call("inspectExecution", { sandbox: box, execution: "00000000-0000-4000-8000-000000000000" }),
    ).rejects.toMatchObject({ code: "not_found" });
  });

  test("keeps its outputs over a server's death: what came before, meanwhile and after, and how it ended", async () => {
    const find = (id: string): Promise<OutputOf<"inspectExecution">> =>
      server.client.call("inspectExecution", { sandbox: box, execution: id });
    const ended = await run("print('long over')");
    for (const context of ["second", "third"]) await run("0", { context });
    // The kill falls into a pause: what is on its way in that moment is lost.
    const said = ["before", "meanwhile", "after"].map((word) => `print('${word}', flush=True)`);
    const lines = `import time\n${said.join("\ntime.sleep(4)\n")}\n'whole'`;
    const [{ id }, meanwhile] = await Promise.all([
      run(lines, { background: true }),
      run("import time\ntime.sleep(4)\nprint('unheard')\n'result'", { background: true, context: "second" }),
    ]);
    await eventually(
      () => find(id),
      ({ outputs }) => outputs.length > 0,
    );
    await server.kill();
    // One whose end the killed server was sent, and did not read.
    const unheard = randomUUID();
    const began = { id: unheard, sandbox: box, context: "third", startedAt: ended.startedAt };
    writeFileSync(
      join(server.paths.home, "executions", box, `${unheard}.jsonl`),
      `${JSON.stringify({ began })}\n${JSON.stringify({ output: { kind: "stdout", text: "heard" } })}\n{"outp`,
    );
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await server.up();
    expect(await find(ended.id)).toMatchObject({
      state: "done",
      outputs: [{ kind: "stdout", text: "long over\n" }],
      startedAt: ended.startedAt,
    });
    const events: ExecutionEvent[] = [];
    for await (const event of server.client.executionEvents(box, id, AbortSignal.timeout(30_000))) events.push(event);
    expect(events.at(-1)).toMatchObject({ type: "ended", execution: { state: "done" } });
    const { outputs } = await find(id);
    expect(outputs).toEqual([
      { kind: "stdout", text: "before\nmeanwhile\nafter\n" },
      { kind: "result", data: { "text/plain": "'whole'" } },
    ]);
    const lost = await eventually(
      () => find(unheard),
      ({ state }) => state !== "running",
    );
    expect(lost).toMatchObject({ state: "failed", reason: expect.stringContaining("no server"), outputs: [{ text: "heard" }] });
    const second = await eventually(
      () => find(meanwhile.id),
      ({ state }) => state !== "running",
    );
    expect(second).toMatchObject({ state: "done", outputs: [{ text: "unheard\n" }, { data: { "text/plain": "'result'" } }] });
  });

  test("blocks no other caller for as long as it runs", async () => {
    const { id } = await run("import time; time.sleep(1800)", { background: true });
    const listening = server.client.executionEvents(box, id, AbortSignal.timeout(30_000))[Symbol.asyncIterator]().next();
    expect(await run("'at once'", { context: "quick" })).toMatchObject({ state: "done" });
    expect((await server.sh(box, "echo free")).stdout).toBe("free\n");
    expect((await server.client.call("inspectExecution", { sandbox: box, execution: id })).state).toBe("running");
    await server.client.call("interruptContext", { sandbox: box, context: "main" });
    expect((await listening).value).toBeDefined();
  });

  test("is typed as viv python, with files for pictures", async () => {
    const said = viv(server, ["python", "notes", "print('typed'); 1/0"]);
    expect([said.code, said.out]).toEqual([1, "typed\n"]);
    expect(said.err).toContain("ZeroDivisionError");
    const picture = `from IPython.display import Image; import base64; Image(data=base64.b64decode("${PNG}"))`;
    const saved = viv(server, ["python", "notes", "--save", "pictures", "-"], { input: picture });
    expect([saved.code, saved.out]).toEqual([0, "pictures/output-1.png\n"]);
    expect(readFileSync(join(server.place, "pictures/output-1.png"), "base64")).toBe(PNG);
  });

  test("says what to install where there is no Jupyter", async () => {
    const other = (await server.create({ name: "plain" })).id;
    await server.sh(other, "rm -f $(command -v -a jupyter-server jupyter-lab) /usr/bin/jupyter-server", { user: "root" });
    await expect(server.client.call("executeCode", { sandbox: other, context: "main", code: "1" })).rejects.toMatchObject({
      code: "notebook_missing",
      remedy: expect.stringContaining("apt install jupyter-server python3-ipykernel"),
    });
  });
});
