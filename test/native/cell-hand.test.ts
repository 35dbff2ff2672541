/** Output that another program than the one that started a command reads: nothing is lost or told twice, whoever goes away. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeFields, encodeFrame, Fields, FrameDecoder, KIND } from "../../src/base/host/frames.ts";
import type { HandedOutput } from "../../src/base/schema/command.ts";
import { readLog } from "../../src/machine/drivers/log-reader.ts";
import type { CellCommand } from "../../src/machine/drivers/native/cell-command.ts";
import { CellProcess } from "../support/cell-process.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

interface Heard {
  readonly socket: Socket;
  readonly hash: ReturnType<typeof createHash>;
  bytes: number;
  err: string;
  kinds: number[];
  refused: string | undefined;
  readonly closed: Promise<unknown>;
}

function take({ socket: path, exec, token }: HandedOutput, hash = createHash("sha256")): Heard {
  const socket = connect(path);
  const decoder = new FrameDecoder();
  const heard: Heard = { socket, hash, bytes: 0, err: "", kinds: [], refused: undefined, closed: once(socket, "close") };
  const fields = encodeFields([
    ["v", "1"],
    ["op", "take"],
    ["exec", exec],
    ["token", token],
  ]);
  socket.write(encodeFrame(KIND.request, fields));
  socket.on("error", () => undefined);
  socket.on("data", (data: Buffer) => {
    for (const { kind, payload } of decoder.push(data)) {
      if (heard.kinds.at(-1) !== kind) heard.kinds.push(kind);
      if (kind === KIND.error) heard.refused = new Fields(payload).get("code");
      if (kind === KIND.stdout) hash.update(payload);
      if (kind === KIND.stdout || kind === KIND.stderr) heard.bytes += payload.length;
      if (kind === KIND.stderr) heard.err += payload.toString();
    }
  });
  return heard;
}

describe("output that is handed over", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  beforeAll(async () => {
    cell = await new CellProcess().start();
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  /** Starts a command and hands its output over at the first chunk. */
  async function start(script: string, then: (handed: HandedOutput) => Promise<void>, logBytes = 1 << 20) {
    const request = cell.request(["sh", "-c", script], { logBytes });
    const running = await cell.client.exec(request);
    const own = { hash: createHash("sha256"), bytes: 0 };
    const read = (async () => {
      let asked = false;
      for await (const chunk of running.output) {
        if (chunk.stream !== "stdout") continue;
        own.hash.update(chunk.data);
        own.bytes += chunk.data.length;
        if (!asked && !running.handOver(then)) throw new Error("not handed over");
        asked = true;
      }
    })();
    return { request, running, own, read };
  }

  const LINES = "seq 1 4000000";
  const sum = createHash("sha256");
  for (let at = 1; at <= 4_000_000; at += 1) sum.update(`${at}\n`);
  const WANTED = sum.digest("hex");

  test("comes whole and in order, the end behind it, and the log keeps the newest", async () => {
    let heard: Heard | undefined;
    const started = await start(`${LINES}; echo last >&2`, async (handed) => void (heard = take(handed, started.own.hash)), 4 << 20);
    const exit = await started.running.exit;
    await started.read;
    await heard?.closed;
    expect(heard).toMatchObject({ err: "last\n" });
    expect(heard?.kinds).toEqual([KIND.reply, KIND.stdout, KIND.stderr, KIND.end]);
    expect(started.own.hash.digest("hex")).toBe(WANTED);
    expect(exit.outputBytes).toBe(started.own.bytes + (heard?.bytes ?? 0));
    const log = await readLog(cell.logs, started.request.id);
    const text = log.chunks.map((chunk) => (chunk.stream === "gap" ? "<gap>" : chunk.data.toString())).join("");
    expect(text).not.toContain("<gap>");
    expect(text.endsWith("3999999\n4000000\nlast\n")).toBe(true);
    expect(text.length).toBeGreaterThan(1.25 * 1024 ** 2);
    expect(log.offset + text.length).toBe(exit.outputBytes);
    expect(exit.droppedBytes).toBe(log.offset);
    expect(log.exit).toMatchObject({ code: 0, outputBytes: exit.outputBytes });
  });

  test("goes to who brings the token, and to that one once", async () => {
    const tries: Heard[] = [];
    const { running, read } = await start(LINES, async (handed) => {
      tries.push(take({ ...handed, token: handed.token.replace(/.$/, (last) => (last === "0" ? "1" : "0")) }));
      tries.push(take({ ...handed, token: "" }));
      await Promise.all(tries.map(({ closed, socket }) => (socket.on("end", () => socket.end()), closed)));
      tries.push(take(handed));
      await once(tries.at(-1)?.socket as Socket, "data");
      tries.push(take(handed));
    });
    await running.exit;
    await read;
    await Promise.all(tries.map(({ closed }) => closed));
    expect(tries.map(({ refused }) => refused)).toEqual(["not-found", "not-found", undefined, "not-found"]);
  });

  test("is read by who started the command again when it takes it back, or when the reader goes", async () => {
    const back = await start(LINES, async () => back.running.handBack());
    await back.running.exit;
    await back.read;
    expect(back.own.hash.digest("hex")).toBe(WANTED);
    const left = await start(LINES, async (handed) => {
      const heard = take(handed);
      await once(heard.socket, "data");
      heard.socket.destroy();
    });
    const exit = await left.running.exit;
    await left.read;
    expect(exit.code).toBe(0);
    expect(left.own.bytes).toBeGreaterThan(1024 ** 2);
  });

  test("goes to the log alone when who started the command goes, and the reader is told no end", async () => {
    let heard: Heard | undefined;
    const command: { running?: CellCommand } = {};
    const { request, running, read } = await start(`${LINES}; exit 7`, async (handed) => {
      heard = take(handed);
      await once(heard.socket, "data");
      heard.socket.pause();
      command.running?.detach();
    });
    command.running = running;
    await read;
    const log = await eventually(
      () => readLog(cell.logs, request.id),
      ({ exit }) => exit !== null,
    );
    expect(log.exit).toMatchObject({ code: 7 });
    heard?.socket.resume();
    await heard?.closed;
    expect(heard?.kinds).not.toContain(KIND.end);
  });

  test("is in the log while it comes, at most a moment later", async () => {
    let heard: Heard | undefined;
    const { request, running, read } = await start(
      "seq 1 100000; sleep 0.5; seq 1 100000; echo mark; sleep 1000",
      async (handed) => void (heard = take(handed)),
      4 << 20,
    );
    await eventually(
      () => readLog(cell.logs, request.id),
      ({ chunks }) => chunks.some((chunk) => chunk.stream !== "gap" && chunk.data.includes("mark\n")),
    );
    running.signal(9);
    expect(await running.exit).toMatchObject({ signal: 9 });
    await read;
    await heard?.closed;
  });

  test("waits for a reader that does not take it, without memory", async () => {
    let heard: Heard | undefined;
    const { running, read, own } = await start(LINES, async (handed) => {
      heard = take(handed, own.hash);
      heard.socket.pause();
      setTimeout(() => heard?.socket.resume(), 700);
    });
    let ended = false;
    void running.exit.then(() => (ended = true));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(ended).toBe(false);
    await running.exit;
    await read;
    await heard?.closed;
    expect(own.hash.digest("hex")).toBe(WANTED);
  });
});
