/** Floods of output: from many sandboxes at once, from one command, and from a child that goes on after its command has ended. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { contention, heldBy, percentile, timesUntil } from "../support/measure.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MIB = 1024 ** 2;
const FLOODS = 20;
/** From each of them, and beyond what is kept. */
const FLOOD_BYTES = 2 * LIMITS.commandLogBytes;
/** What a caller may have to wait for an answer that takes a millisecond, in the worst twentieth of cases, on a machine with nothing else to do. */
const LAG_MS = 200;

describe("a flood of output", needs("root", "btrfs"), () => {
  let server: TestServer;
  let boxes: string[];

  beforeAll(async () => {
    server = await TestServer.start();
    boxes = [];
    for (let number = 0; number < FLOODS; number += 1) boxes.push((await server.create()).id);
  }, 60_000);
  afterAll(async () => server?.remove());

  const box = (): string => boxes[0] ?? "";
  const ask = () => server.client.call("listSandboxes", {});

  async function allEnded(): Promise<void> {
    for (const sandbox of boxes) {
      await eventually(
        () => server.client.call("listCommands", { sandbox }),
        ({ commands }) => commands.length === 0,
        25_000,
      );
    }
  }

  /** Bytes on disk of the log of a command. */
  function logOf({ sandbox, id }: CommandResult): number {
    const folder = join(server.paths.home, "logs", sandbox);
    const files = readdirSync(folder).filter((name) => name.startsWith(id));
    return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  }

  test(
    "F-48: from twenty sandboxes at full speed leaves the server answering, logs within their bound, and the loss told",
    { timeout: 60_000 },
    async () => {
      const crowded = contention();
      const before = heldBy(server.pid);
      const command = ["head", "-c", String(FLOOD_BYTES), "/dev/zero"];
      const floods = await Promise.all(boxes.map((sandbox) => server.client.call("runCommand", { sandbox, command, background: true })));
      const waits = await timesUntil(allEnded(), ask);
      const during = heldBy(server.pid);
      const ends = await Promise.all(floods.map(({ sandbox, id }) => server.client.call("inspectCommand", { sandbox, command: id })));
      expect(percentile(waits, 0.95)).toBeLessThan(LAG_MS * Math.max(crowded, contention()));
      expect(during.memoryBytes - before.memoryBytes).toBeLessThan(512 * MIB);
      for (const end of ends) {
        expect(logOf(end)).toBeLessThan(LIMITS.commandLogBytes * 1.01);
        expect(end).toMatchObject({ truncated: true, end: { exitCode: 0, outputBytes: FLOOD_BYTES } });
        expect(end.end?.droppedBytes).toBeGreaterThanOrEqual(FLOOD_BYTES - LIMITS.commandLogBytes);
      }
    },
  );

  test("F-30: a hundred megabytes of garbage on standard error are captured to a bound, and counted", async () => {
    const before = heldBy(server.pid).memoryBytes;
    const result = await server.sh(box(), "head -c 100M /dev/urandom >&2; echo done; exit 3");
    expect(result).toMatchObject({ stdout: "done\n", truncated: true, end: { cause: "exit", exitCode: 3, outputBytes: 100 * MIB + 5 } });
    // Bytes that are no text count once; each becomes one character.
    expect(result.stderr.length).toBeGreaterThan(LIMITS.capturedOutputBytes / 4);
    expect(result.stderr.length).toBeLessThanOrEqual(LIMITS.capturedOutputBytes);
    expect(heldBy(server.pid).memoryBytes - before).toBeLessThan(90 * MIB);
    expect(logOf(result)).toBeLessThan(LIMITS.commandLogBytes * 1.01);
  });

  test("F-10: a command has ended when it has exited, although a child of it holds its output open", async () => {
    const result = await server.sh(box(), "sleep 1000 & echo started; exit 7");
    expect(result).toMatchObject({ stdout: "started\n", end: { cause: "exit", exitCode: 7 } });
    expect(result.end?.wallMs).toBeLessThan(10_000);
    expect((await server.sh(box(), "pgrep -c sleep")).stdout, "the child goes on, and has the pipe").toBe("1\n");
    const stream = await server.client.exec(box(), { command: ["sh", "-c", "sleep 1001 & exit 8"] });
    expect((await stream.end).exitCode).toBe(8);
  });

  test("F-10: who waits for the end of the output waits for as long as the child lives", async () => {
    // The control: the shell's own way to wait for output, with the same child.
    const result = await server.sh(box(), 'heard=$(sleep 1002 & echo started); echo "$heard"', { timeoutMs: 2_000 });
    expect(result.end?.cause).toBe("timeout");
  });
});
