/** Floods of output: from many sandboxes at once, from one command, and from a child that goes on after its command has ended. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/schema/limits.ts";
import type { CommandResult } from "../../src/schema/command.ts";
import { heldBy, percentile, timesDuring } from "../support/measure.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MIB = 1024 ** 2;
const FLOODS = 20;
/** What a caller may have to wait for an answer that takes a millisecond, in the worst twentieth of cases. */
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

  /** Bytes on disk of the log of a command. */
  function logOf({ sandbox, id }: CommandResult): number {
    const folder = join(server.paths.home, "logs", sandbox);
    const files = readdirSync(folder).filter((name) => name.startsWith(id));
    return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  }

  test("F-48: from twenty sandboxes at full speed leaves the server answering, logs within their bound, and the loss told", async () => {
    const before = heldBy(server.pid);
    const floods = await Promise.all(
      boxes.map((sandbox) => server.client.call("runCommand", { sandbox, command: ["cat", "/dev/zero"], background: true })),
    );
    const waits = await timesDuring(4_000, ask);
    const during = heldBy(server.pid);
    await Promise.all(floods.map(({ sandbox, id }) => server.client.call("killCommand", { sandbox, command: id, signal: "KILL" })));
    const ends = await Promise.all(
      floods.map(({ sandbox, id }) =>
        eventually(
          () => server.client.call("inspectCommand", { sandbox, command: id }),
          ({ running }) => !running,
        ),
      ),
    );
    const written = ends.map(({ end }) => end?.outputBytes ?? 0);
    // It is a flood, from each of them, and beyond what is kept.
    expect(Math.min(...written)).toBeGreaterThan(LIMITS.commandLogBytes);
    expect(percentile(waits, 0.95)).toBeLessThan(LAG_MS);
    expect(during.memoryBytes - before.memoryBytes).toBeLessThan(512 * MIB);
    for (const command of ends) {
      expect(logOf(command)).toBeLessThan(LIMITS.commandLogBytes * 1.01);
      expect(command).toMatchObject({ truncated: true });
      const { outputBytes = 0, droppedBytes = 0 } = command.end ?? {};
      expect(outputBytes - droppedBytes).toBeLessThanOrEqual(LIMITS.commandLogBytes);
      expect(droppedBytes).toBeGreaterThan(0);
    }
  });

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
