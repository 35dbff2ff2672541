import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CommandLog } from "../../src/machine/drivers/drivers.ts";
import { readLog } from "../../src/machine/drivers/log-reader.ts";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

const textOf = (log: CommandLog): string =>
  log.chunks.map((chunk) => (chunk.stream === "gap" ? `<gap ${chunk.bytes}>` : chunk.data.toString())).join("");

describe("the log of a command", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  beforeAll(async () => {
    cell = await new CellProcess().start();
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  const ended = (id: string) =>
    vi.waitFor(async () => {
      const log = await readLog(cell.logs, id);
      if (log.exit === null) throw new Error("it runs");
      return log;
    }, 20_000);

  test("holds both streams and the end", async () => {
    const request = cell.request(["sh", "-c", "echo a; echo b >&2; exit 3"]);
    await (
      await cell.client.exec(request)
    ).exit;
    const log = await readLog(cell.logs, request.id);
    expect(log.chunks.map((chunk) => chunk.stream).toSorted()).toEqual(["stderr", "stdout"]);
    expect(log.exit).toMatchObject({ code: 3, outputBytes: 4, droppedBytes: 0 });
  });

  test("can be read from any byte on", async () => {
    const request = cell.request(["printf", "0123456789"]);
    await (
      await cell.client.exec(request)
    ).exit;
    const log = await readLog(cell.logs, request.id, 7);
    expect(log.offset).toBe(7);
    expect(textOf(log)).toBe("789");
  });

  test("keeps the newest output within its bound and counts the rest", async () => {
    const request = cell.request(["sh", "-c", "seq 1 200000"], { logBytes: 100_000 });
    const running = await cell.client.exec(request);
    for await (const _ of running.output) continue;
    const exit = await running.exit;
    const log = await readLog(cell.logs, request.id);
    const text = textOf(log);
    expect(text.endsWith("199999\n200000\n")).toBe(true);
    expect(text.length).toBeGreaterThan(40_000);
    expect(exit.droppedBytes).toBe(exit.outputBytes - text.length);
    expect(log.offset).toBe(exit.droppedBytes);
    const size = readdirSync(cell.logs)
      .filter((name) => name.startsWith(`${request.id}.`))
      .reduce((sum, name) => sum + statSync(join(cell.logs, name)).size, 0);
    expect(size).toBeLessThan(101_000);
  });

  test("goes on, with the exit code last, when who started the command is gone", async () => {
    const request = cell.request(["sh", "-c", "echo one; read _; head -c 3000000 /dev/zero | tr '\\0' x; echo two; exit 9"], {
      stdin: true,
      logBytes: 8 << 20,
    });
    const script = `
      const { CellClient } = await import(process.argv[1]);
      const running = await new CellClient(process.argv[2]).exec(JSON.parse(process.argv[3]));
      for await (const chunk of running.output) process.stdout.write(chunk.data);`;
    const client = new URL("../../src/machine/drivers/native/cell-client.ts", import.meta.url).href;
    const server = spawn(process.execPath, ["--input-type=module", "-e", script, client, cell.socket, JSON.stringify(request)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(server.stdout, "data");
    server.kill("SIGKILL");
    await once(server, "exit");
    const attached = await cell.client.attach(request.id, true);
    await attached?.write(Buffer.from("go on\n"));
    attached?.detach();
    const log = await ended(request.id);
    expect(log.exit).toMatchObject({ code: 9, outputBytes: 3_000_008, droppedBytes: 0 });
    expect(textOf(log)).toBe(`one\n${"x".repeat(3_000_000)}two\n`);
  });

  test("gets what a background child prints after the end, and keeps the end through rotation", async () => {
    const request = cell.request(["sh", "-c", "(sleep 0.6; seq 1 20000) & exit 5"], { logBytes: 32_768 });
    expect((await (await cell.client.exec(request)).exit).code).toBe(5);
    await vi.waitFor(async () => expect(textOf(await readLog(cell.logs, request.id)).endsWith("20000\n")).toBe(true), 10_000);
    expect((await readLog(cell.logs, request.id)).exit).toMatchObject({ code: 5 });
  });

  test("is not made when the program cannot run, nor when none is wanted", async () => {
    const missing = cell.request(["no-such-program"]);
    await expect(cell.client.exec(missing)).rejects.toThrow();
    await cell.collect(["true"], { id: "unlogged", logBytes: 0 });
    expect(readdirSync(cell.logs).filter((name) => name.startsWith(`${missing.id}.`) || name.startsWith("unlogged"))).toEqual([]);
    expect(await readLog(cell.logs, "unlogged")).toEqual({ chunks: [], offset: 0, exit: null });
  });

  test("tells the end of every command when the sandbox is stopped", async () => {
    const request = cell.request(["sh", "-c", "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done"]);
    const hard = cell.request(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]);
    for (const one of [request, hard]) {
      const running = await cell.client.exec(one);
      for await (const _ of running.output) break;
      running.detach();
    }
    const over = cell.ended;
    await cell.client.stop(600);
    await over;
    expect((await readLog(cell.logs, request.id)).exit).toMatchObject({ code: 4 });
    expect(textOf(await readLog(cell.logs, request.id))).toMatch(/^up\n[^]*bye\n$/);
    expect((await readLog(cell.logs, hard.id)).exit).toMatchObject({ signal: 9 });
    await expect(cell.client.ping()).rejects.toMatchObject({ code: "not_running" });
  });
});

test("a full disk costs a command output, never its run nor the news of its end", needs("linux", "root", "compiler"), async () => {
  const cell = await new CellProcess().startWithSmallLogs("96k");
  try {
    const request = cell.request(["sh", "-c", "seq 1 100000; echo last"], { logBytes: 8 << 20 });
    const running = await cell.client.exec(request);
    let bytes = 0;
    for await (const chunk of running.output) if (chunk.stream !== "gap") bytes += chunk.data.length;
    const exit = await running.exit;
    expect(exit).toMatchObject({ code: 0, outputBytes: bytes });
    expect(exit.droppedBytes).toBeGreaterThan(400_000);
    const log = await readLog(cell.logsInside, request.id);
    expect(log.exit).toMatchObject({ code: 0, outputBytes: bytes });
    expect((await cell.collect(["true"], { logBytes: 1 << 20 })).exit.code).toBe(0);
  } finally {
    await cell.remove();
  }
  expect(cell.complaints).toBe("");
});
