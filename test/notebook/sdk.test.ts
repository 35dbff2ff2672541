/** IDE-1, API-1: code piece by piece by the SDK, with the machine's Jupyter. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CodeOutput, Sandbox } from "../../src/interfaces/sdk/exports.ts";
import { Vivarium } from "../../src/interfaces/sdk/node.ts";
import { png } from "../support/mcp-examples.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PICTURE = png(2, 3);

describe("a program that runs code piece by piece by the SDK (IDE-1, API-1)", needs("root", "jupyter"), () => {
  let server: TestServer;
  let viv: Vivarium;
  let box: Sandbox;

  beforeAll(async () => {
    server = await TestServer.start();
    viv = new Vivarium({ home: server.paths.home, start: false });
    box = await viv.create({ project: server.project });
  });
  afterAll(async () => {
    viv?.close();
    await server?.remove();
  });

  test("gets the value, what was printed, and an error of the code as a value; variables stay", async () => {
    const first = await box.code("import sys\nx = 41\nprint('out')\nprint('err', file=sys.stderr)\nx + 1");
    expect(first).toMatchObject({ state: "done", reason: null, stdout: "out\n", stderr: "err\n", text: "42", error: null, pictures: [] });
    expect(first.data).toEqual({ "text/plain": "42" });
    const failed = await box.code("x / 0");
    expect(failed).toMatchObject({ state: "failed", reason: null, text: null, error: { name: "ZeroDivisionError" } });
    expect(failed.error?.traceback).toContain("x / 0");
    expect(await box.code("x", { context: "other" })).toMatchObject({ error: { name: "NameError" } });
    expect((await box.contexts()).map(({ name }) => name).toSorted()).toEqual(["main", "other"]);
    await box.context("other").remove();
    expect((await box.contexts()).length).toBe(1);
  });

  test("gets pictures as bytes, and all forms of a result", async () => {
    const code = `from IPython.display import Image, display
import base64
display({"image/png": "no base64!", "text/plain": "a broken one"}, raw=True)
display(Image(data=base64.b64decode("${PICTURE.toString("base64")}")))
class Table:
    def _repr_html_(self): return "<b>1</b>"
    def __repr__(self): return "a table"
Table()`;
    const { pictures, data, text, outputs } = await box.code(code);
    expect(pictures.map(({ type }) => type)).toEqual(["image/png"]);
    expect(Buffer.from(pictures[0]?.data ?? []).equals(PICTURE)).toBe(true);
    expect([data["text/html"], text]).toEqual(["<b>1</b>", "a table"]);
    expect(outputs).toHaveLength(3);
  });

  test("hears outputs as they come, and interrupts the code by cancelling the call, which keeps the variables", async () => {
    const stop = new AbortController();
    const heard: CodeOutput[] = [];
    const running = box.code("kept = 7\nprint('begun', flush=True)\nimport time; time.sleep(600)", {
      signal: stop.signal,
      onOutput: (output) => {
        heard.push(output);
        stop.abort();
      },
    });
    await expect(running).rejects.toMatchObject({ code: "cancelled" });
    expect(heard).toEqual([{ kind: "stdout", text: "begun\n" }]);
    expect(await box.code("kept")).toMatchObject({ text: "7" });
    await expect(box.code("1", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
    const early = new AbortController();
    const starting = box.code("import time; time.sleep(600)", { signal: early.signal });
    early.abort();
    await expect(starting).rejects.toMatchObject({ code: "cancelled" });
    expect(await box.code("'free again'")).toMatchObject({ state: "done" });
  });

  test("limits the time of a piece, interrupts, restarts, and is told of options that do not exist", async () => {
    expect(await box.code("import time; time.sleep(600)", { timeout: "1s" })).toMatchObject({ state: "interrupted" });
    const context = box.context("main");
    const running = context.run("print('on', flush=True); time.sleep(600)", { onOutput: () => void context.interrupt() });
    expect(await running).toMatchObject({ state: "interrupted", stdout: "on\n" });
    await context.restart();
    expect(await context.run("kept")).toMatchObject({ error: { name: "NameError" } });
    await expect(box.code("1", { contxt: "x" } as never)).rejects.toThrow('code has no option "contxt".');
    await expect(box.code("1", { context: "No Name" })).rejects.toMatchObject({ code: "invalid_input" });
  });
});
