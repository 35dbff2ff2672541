/** Process 1 with sanitizers, asked for everything at once by clients that come and go, while a process inside kills what it makes ahead. */
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeFields, encodeFrame, FrameDecoder, KIND } from "../../src/base/host/frames.ts";
import type { HandedOutput } from "../../src/base/schema/command.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { CellClient } from "../../src/machine/drivers/native/cell-client.ts";
import type { CellCommand } from "../../src/machine/drivers/native/cell-command.ts";
import { CellProcess } from "../support/cell-process.ts";
import { Randomness } from "../support/randomness.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

/** Children that wait for work look like process 1 itself. */
const DISTURB =
  'for p in /proc/[0-9]*; do read -r c < $p/comm && [ "${c#testinit}" != "$c" ] && kill -SIGNAL ${p#/proc/}; done 2>/dev/null';

describe("process 1 in a storm", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  let random: Randomness;
  let client: CellClient;
  const seed = Date.now() % 1_000_000;
  beforeAll(async () => {
    random = new Randomness(seed);
    // A file that takes what a group takes: with a group, process 1 has children made ahead.
    cell = await new CellProcess().start("cgroup:/dev/null");
    client = new CellClient(cell.socket, 5_000);
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints, `seed ${seed}`).toBe("");
  });

  const descriptors = (): number => readdirSync(`/proc/${cell.firstPid}/fd`).length;

  async function bytesOf(running: CellCommand): Promise<number> {
    let bytes = 0;
    for await (const chunk of running.output) bytes += chunk.stream === "gap" ? chunk.bytes : chunk.data.length;
    return bytes;
  }

  /** Unless something inside killed it, a command has said all it had to say. */
  async function whole(running: CellCommand, bytes: number, code: number): Promise<void> {
    const heard = await bytesOf(running);
    const exit = await running.exit;
    if (exit.signal === null) expect([heard, exit.code], `seed ${seed}`).toEqual([bytes, code]);
  }

  async function takeAll({ socket: path, exec, token }: HandedOutput, goesAway: boolean): Promise<void> {
    const socket = connect(path);
    const decoder = new FrameDecoder();
    const closed = once(socket, "close");
    socket
      .on("error", () => undefined)
      .on("data", (data: Buffer) => {
        decoder.push(data);
        if (goesAway) socket.destroy();
      });
    const fields = { v: "1", op: "take", exec, token };
    socket.write(encodeFrame(KIND.request, encodeFields(Object.entries(fields))));
    await closed;
  }

  const acts: (() => Promise<void>)[] = [
    async () => {
      const code = random.below(200);
      await whole(await client.exec(cell.request(["sh", "-c", `echo 12345; exit ${code}`], { brief: true })), 6, code);
    },
    async () => {
      const running = await client.exec(cell.request(["head", "-c", "70000"], { stdin: true }));
      running.write(Buffer.alloc(70_000, "i")).then(
        () => running.endInput(),
        () => undefined,
      );
      await whole(running, 70_000, 0);
    },
    async () => {
      const asked = cell.request(["sh", "-c", "sleep 5"], { brief: random.below(2) === 0 });
      const exit = client.exec(asked).then((running) => running.exit);
      const waits = new AbortController();
      const over = (): void => waits.abort();
      exit.then(over, over);
      await wait(random.below(6));
      while (!waits.signal.aborted && !(await client.kill(asked.id, 9))) await wait(1);
      expect((await exit).signal, `seed ${seed}`).not.toBeNull();
    },
    async () => {
      const asked = cell.request(["sh", "-c", "echo x; sleep 0.0$1", "sh", String(random.below(10))]);
      (await client.exec(asked)).detach();
      const again = await client.attach(asked.id, false);
      if (again !== undefined) await again.exit;
    },
    async () => {
      const running = await client.exec(cell.request(["head", "-c", "3000000", "/dev/zero"], { logBytes: 4 << 20 }));
      const goesAway = random.below(2) === 0;
      running.handOver((handed) => takeAll(handed, goesAway));
      await bytesOf(running);
      await running.exit;
    },
    async () => {
      const signal = random.of(["KILL", "TERM"]);
      await (
        await client.exec(cell.request(["sh", "-c", DISTURB.replace("SIGNAL", signal)], { brief: true }))
      ).exit;
    },
    async () => {
      const socket = connect(cell.socket);
      const kinds = Object.values(KIND);
      const closed = once(socket, "close");
      socket.on("error", () => undefined).resume();
      for (let count = random.below(4); count >= 0; count -= 1)
        socket.write(encodeFrame(random.of(kinds), Buffer.alloc(random.below(99), "a=\0")));
      await wait(random.below(5));
      socket.destroy();
      await closed;
    },
  ];

  test("goes on, forgets no command and keeps no descriptor", { timeout: 600_000 }, async () => {
    await cell.collect(["true"], { brief: true });
    const before = descriptors();
    const many = rounds(400, 8_000);
    let begun = 0;
    const wrong: unknown[] = [];
    const caller = async (): Promise<void> => {
      while (begun++ < many) {
        try {
          await random.of(acts)();
        } catch (error) {
          // A command that was killed in its first moment may be told of as one that could not run.
          if (!(error instanceof VivError)) wrong.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: 12 }, caller));
    expect(wrong).toEqual([]);
    await (
      await client.exec(cell.request(["sh", "-c", DISTURB.replace("SIGNAL", "CONT")]))
    ).exit;
    await expect.poll(async () => (await client.list()).filter(({ running }) => running), { timeout: 20_000 }).toEqual([]);
    await expect.poll(descriptors, { timeout: 20_000 }).toBeLessThanOrEqual(before + 4);
    expect((await cell.collect(["echo", "after"], { brief: true })).stdout).toBe("after\n");
    expect(cell.complaints).toBe("");
  });
});
