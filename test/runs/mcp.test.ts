/** MCP-1, MCP-3: the tools of a chat client over standard input and output, in both eras of the protocol. */
import type { Client } from "@modelcontextprotocol/client";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { ERAS } from "../support/mcp-client.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv } from "../support/viv.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const task = (...lines: readonly string[]): Fields => ({ task_description: lines.join("\n") });

describe("a chat client", needs("root"), () => {
  let lab: ChatLab;
  let modern: Client;
  beforeAll(async () => {
    lab = await ChatLab.open();
    modern = await lab.client();
  });
  afterAll(async () => lab?.remove());

  test.for(ERAS)("MCP-1: gives a task with files and gets exactly what S3 names (%s)", async (era) => {
    const client = await lab.client({ era });
    const done = await use(client, "execute_task", {
      ...task(
        "call id -u > who; pwd >> who; wc -l < data/in.csv > lines.txt",
        "call touch /usr/x || echo read-only",
        "text I counted the lines",
      ),
      files: [
        { path: "data/in.csv", content: base64("a\nb\n") },
        { path: "plain.txt", text: "as it stands" },
      ],
    });
    expect(Object.keys(done)).toEqual(["session_id", "status", "output", "files_created", "duration_seconds"]);
    expect(done).toMatchObject({ status: "completed", files_created: ["lines.txt", "who"] });
    expect(done["output"]).toContain("I counted the lines");
    expect(done["duration_seconds"]).toBeGreaterThan(0);
    const { session_id } = done;
    expect(await use(client, "get_sandbox_status", { session_id })).toEqual(done);
    expect(await use(client, "download_files", { session_id })).toEqual({
      session_id,
      files: [
        { path: "lines.txt", size: 2, content: base64("2\n") },
        { path: "who", size: 16, content: base64("1000\n/workspace\n") },
      ],
    });
    expect(await use(client, "cleanup_sandbox", { session_id })).toEqual({ session_id, status: "removed" });
    expect(await refusal(client, "get_sandbox_status", { session_id })).toContain("Call list");
  });

  test.for(["2025-11-25", "2025-06-18"])("MCP-1: speaks the protocol of %s where it knows no newer one", async (version) => {
    const program = startViv(lab.server, ["mcp"]);
    const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
    const ask = async (id: number, method: string, params: object): Promise<Fields> => {
      program.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
      const { value } = await lines.next();
      return (JSON.parse(String(value)) as { result: Fields }).result;
    };
    const clientInfo = { name: "old", version: "1" };
    expect(await ask(1, "initialize", { protocolVersion: version, capabilities: {}, clientInfo })).toMatchObject({
      protocolVersion: version,
    });
    program.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
    expect((await ask(2, "tools/list", {}))["tools"]).toHaveLength(12);
    const listed = await ask(3, "tools/call", { name: "list", arguments: {} });
    expect(listed).toMatchObject({ structuredContent: expect.any(Object) as object });
    program.stdin.end();
    await once(program, "close");
  });

  test("MCP-1: is told why a task failed, in the same five fields", async () => {
    const calling = use(modern, "execute_task", task("text I try", "hold never"));
    const { runs } = await eventually(
      () => lab.server.client.call("listRuns", {}),
      ({ runs: [newest] }) => newest?.task.startsWith("text I try") === true && newest.steps === 0 && newest.state === "running",
    );
    await lab.server.client.call("stopRun", { run: runs[0]?.id ?? "" });
    const failed = await calling;
    expect(Object.keys(failed)).toEqual(["session_id", "status", "output", "files_created", "duration_seconds"]);
    expect(failed).toMatchObject({ status: "failed", files_created: [] });
    expect(failed["output"]).toContain("It failed: A person stopped it.");
  });

  test("MCP-1: gets a handle before its patience ends, waits on with progress, and gets the same result", async () => {
    const client = await lab.client({ words: ["--answer-within", "1s"] });
    const started = await use(client, "execute_task", task("call touch begun", "hold go", "call echo made > made.txt"));
    expect(started).toMatchObject({
      status: "running",
      next: expect.stringContaining(`Call wait with session_id ${String(started["session_id"])}`),
    });
    const { session_id } = started;
    const told: string[] = [];
    const waiting = modern.callTool({ name: "wait", arguments: { session_id } }, { onprogress: ({ message = "" }) => told.push(message) });
    const { sandbox } = await eventually(
      () => lab.server.client.call("inspectRun", { run: String(session_id) }),
      (run) => run.steps > 0,
    );
    await lab.server.sh(sandbox ?? "", "touch go");
    expect((await waiting).structuredContent).toMatchObject({
      session_id,
      status: "completed",
      files_created: ["begun", "go", "made.txt"],
    });
    expect(told.length, "progress keeps the client's timer from ending the call").toBeGreaterThan(0);
  });

  test.for(ERAS)("MCP-1: cancels a task, which ends it and keeps what was done (%s)", async (era) => {
    const client = await lab.client({ era });
    const cancel = new AbortController();
    const before = new Set((await lab.server.client.call("listRuns", {})).runs.map(({ id }) => id));
    const calling = client.callTool(
      { name: "execute_task", arguments: task("call echo kept > kept.txt", "hold never") },
      {
        signal: cancel.signal,
        onprogress: ({ message = "" }) => message.includes("kept.txt") && cancel.abort("The person pressed escape"),
      },
    );
    await expect(calling).rejects.toThrow();
    const { runs } = await eventually(
      () => lab.server.client.call("listRuns", {}),
      ({ runs: all }) => all.some(({ id, endedAt }) => !before.has(id) && endedAt !== null),
    );
    const run = runs.find(({ id }) => !before.has(id));
    expect(run).toMatchObject({ outcome: "cancelled" });
    const files = await use(client, "download_files", { session_id: run?.id });
    expect(files).toMatchObject({ files: [{ path: "kept.txt", content: base64("kept\n") }] });
  });

  test("MCP-1: whose timer ends does not end the work", async () => {
    const calling = modern.callTool({ name: "execute_task", arguments: task("hold go", "text still here") }, { timeout: 1500 });
    await expect(calling).rejects.toThrow(/timed out/i);
    const { runs } = await eventually(
      () => lab.server.client.call("listRuns", {}),
      ({ runs: [newest] }) => newest?.task.includes("still here") === true,
    );
    const [run] = runs;
    expect(run).toMatchObject({ endedAt: null });
    const { sandbox } = await eventually(
      () => lab.server.client.call("inspectRun", { run: run?.id ?? "" }),
      ({ sandbox: place }) => place !== null,
    );
    await lab.server.sh(sandbox ?? "", "touch go");
    expect(await use(modern, "wait", { session_id: run?.id })).toMatchObject({
      status: "completed",
      output: expect.stringContaining("still here"),
    });
  });

  test("MCP-1: goes away without ending the work, and another one gets its result", async () => {
    const leaving = await lab.client();
    const calling = leaving.callTool({ name: "execute_task", arguments: task("hold go", "text alone") }).catch(() => undefined);
    const { runs } = await eventually(
      () => lab.server.client.call("listRuns", {}),
      ({ runs: [run] }) => run?.sandbox !== null && run?.state === "running" && run.task.includes("alone"),
    );
    await leaving.close();
    await calling;
    const [run] = runs;
    await lab.server.sh(run?.sandbox ?? "", "touch go");
    expect(await use(modern, "wait", { session_id: run?.id })).toMatchObject({ status: "completed" });
  });

  test("MCP-1: has its files saved into a new folder of the person's downloads, and nothing else", async () => {
    const { session_id } = await use(
      modern,
      "execute_task",
      task("call mkdir out && echo hello > out/a.txt && chmod 777 out/a.txt && ln -s /etc/passwd link"),
    );
    const saved = await use(modern, "download_files", { session_id, save: true });
    const folder = String(saved["folder"]);
    expect(folder.startsWith(join(lab.server.place, "Downloads", "vivarium-run"))).toBe(true);
    expect(saved["files"]).toEqual([{ path: "out/a.txt", size: 6, saved: join(folder, "out/a.txt") }]);
    expect(readFileSync(join(folder, "out/a.txt"), "utf8")).toBe("hello\n");
    expect(statSync(join(folder, "out/a.txt")).mode & 0o111).toBe(0);
    const again = await use(modern, "download_files", { session_id, save: true });
    expect(again["folder"]).toBe(`${folder}-2`);
    expect(await refusal(modern, "download_files", { session_id, paths: ["../../etc/passwd"], save: true })).toContain(
      "leaves the workspace",
    );
  });

  test("MCP-1: reads logs, diffs and files as resources", async () => {
    const answer = await modern.callTool({ name: "execute_task", arguments: task("call echo hi > 'a b.txt'", "text spoken") });
    const { session_id } = answer.structuredContent as Fields;
    const link = answer.content.find((part) => part.type === "resource_link");
    expect((await modern.readResource({ uri: link?.uri ?? "" })).contents).toMatchObject([{ text: "hi\n" }]);
    expect((await modern.readResource({ uri: `viv://${String(session_id)}/log` })).contents).toMatchObject([
      { text: expect.stringContaining("spoken") },
    ]);
    expect((await modern.readResource({ uri: `viv://${String(session_id)}/diff` })).contents).toMatchObject([
      { text: expect.stringContaining("+hi") },
    ]);
    expect((await modern.listResources()).resources.map(({ uri }) => uri)).toContain(`viv://${String(session_id)}/log`);
    const { resourceTemplates } = await modern.listResourceTemplates();
    expect(resourceTemplates.map(({ name }) => name)).toEqual(["log", "diff", "file"]);
  });

  test("MCP-1: gets only the tools that were chosen for it", async () => {
    const client = await lab.client({ words: ["--tools", "execute_task,wait"] });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["execute_task", "wait"]);
  });

  const MB = 1024 ** 2;
  const many = Array.from({ length: 10_000 }, (_, index) => ({ path: `f${index}`, text: "" }));
  test.for<[string, readonly Fields[], RegExp]>([
    ["leaves the workspace", [{ path: "a/../../x", text: "" }], /leaves the workspace/],
    ["is absolute", [{ path: "/etc/passwd", text: "" }], /is not relative/],
    ["is one of Windows", [{ path: "C:\\x", text: "" }], /is not relative/],
    ["holds control characters", [{ path: "a\u001b[2Jb", text: "" }], /characters that can't be seen/],
    ["holds a line end", [{ path: "a\nb", text: "" }], /characters that can't be seen/],
    ["is a folder", [{ path: "a/", text: "" }], /not in plain form/],
    [
      "is there twice",
      [
        { path: "a", text: "" },
        { path: "./a", text: "" },
      ],
      /is there twice/,
    ],
    [
      "is there in two spellings",
      [
        { path: "Data.csv", text: "" },
        { path: "data.CSV", text: "" },
      ],
      /differ only in how/,
    ],
    [
      "is a file and a folder",
      [
        { path: "a", text: "" },
        { path: "a/b", text: "" },
      ],
      /both a file and a folder/,
    ],
    ["is no base64", [{ path: "a", content: "%%%" }], /is not base64/],
    ["is cut base64", [{ path: "a", content: "YWJjZ" }], /is not base64/],
    ["is too large", [{ path: "big.bin", content: Buffer.alloc(100 * MB).toString("base64") }], /100 MB; a file is 32 MB at most/],
    ["is one of too many", many, /10000 files are too many/],
  ])("MCP-3: is told clearly that a file %s", async ([, files, why]) => {
    const said = await refusal(modern, "execute_task", { ...task("text x"), files });
    expect(said).toMatch(why);
    expect(said).toContain("execute_task again");
  });

  test("MCP-3: is told the limits where its message is too long, and is heard after that", async () => {
    const program = startViv(lab.server, ["mcp"]);
    const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
    const answer = async (): Promise<Fields> => JSON.parse(String((await lines.next()).value)) as Fields;
    const send = (piece: string | Buffer): Promise<void> =>
      new Promise((resolve, reject) => program.stdin.write(piece, (error) => (error == null ? resolve() : reject(error))));
    const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "large", version: "1" } };
    await send(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello })}\n`);
    expect(await answer()).toMatchObject({ id: 1 });
    await send('{"method":"tools/call","params":{"name":"execute_task","arguments":{"task_description":"');
    for (let count = 0; count <= LIMITS.maxToolMessageBytes / MB; count += 1) await send(Buffer.alloc(MB, "x"));
    await send('"}},"jsonrpc":"2.0","id":2}\n');
    expect(await answer()).toMatchObject({
      id: 2,
      error: { message: expect.stringMatching(/larger than 256 MB.*32 MB at most.*execute_task again/) },
    });
    await send(`${JSON.stringify({ jsonrpc: "2.0", id: 3, method: "tools/list", params: {} })}\n`);
    expect(await answer()).toMatchObject({ id: 3, result: { tools: expect.any(Array) as unknown[] } });
    program.stdin.end();
    await once(program, "close");
  });

  test("MCP-3: is told which field is wrong, and that other projects are not its own", async () => {
    expect(await refusal(modern, "execute_task", { ...task("text x"), timeout: 59 })).toContain("timeout");
    expect(await refusal(modern, "execute_task", { ...task("text x"), other: 1 })).toContain("other");
    const said = await refusal(modern, "execute_task", { ...task("text x"), project: lab.server.project });
    expect(said).toContain("is not a folder that the person has opened");
    expect(said).toContain("viv mcp --project");
    expect(await refusal(modern, "clone", {})).toContain("viv mcp --project");
  });
});
