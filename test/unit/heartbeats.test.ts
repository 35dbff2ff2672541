import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RunRow } from "../../src/base/store/rows.ts";
import type { Live } from "../../src/sandbox/shared/live.ts";
import type { AgentProcess } from "../../src/work/agents/agent-process.ts";
import { Heartbeats } from "../../src/work/agents/heartbeats.ts";
import type { RunJournal } from "../../src/work/agents/run-journal.ts";
import { aSandboxRow } from "../support/rows.ts";

const SECOND = 1_000;

/** A sandbox that answers or not, and what was done to the agent in it. */
function watched() {
  const now = { health: "ok", state: "running", id: "run" };
  const ends: string[] = [];
  const sandbox = { answers: true };
  const greet = async (): Promise<void> => {
    if (!sandbox.answers) throw new Error("no answer");
  };
  const live = { require: () => ({ walls: { greet } }) } as unknown as Live;
  const journal = { row: now as unknown as RunRow, change: (patch: Partial<RunRow>) => Object.assign(now, patch) } as unknown as RunJournal;
  const agent = { stop: (outcome: string) => ends.push(outcome) } as Pick<AgentProcess, "stop">;
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const isPaused = async (): Promise<boolean> => now.state === "paused";
  const heart = new Heartbeats(live, log).watch({ journal, sandbox: aSandboxRow(), agent, isPaused });
  return { now, ends, sandbox, heart };
}

describe("the heartbeat of an agent", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  test("AGT-4: is degraded after 45 seconds without an answer and lost after 90, and well again with the first answer", async () => {
    const { now, ends, sandbox, heart } = watched();
    await vi.advanceTimersByTimeAsync(60 * SECOND);
    expect(now.health).toBe("ok");
    sandbox.answers = false;
    await vi.advanceTimersByTimeAsync(60 * SECOND);
    expect(now.health).toBe("degraded");
    expect(ends).toEqual([]);
    sandbox.answers = true;
    await vi.advanceTimersByTimeAsync(30 * SECOND);
    expect(now.health).toBe("ok");
    sandbox.answers = false;
    await vi.advanceTimersByTimeAsync(120 * SECOND);
    expect(ends[0]).toBe("lost");
    heart.close();
  });

  test("AGT-4: of one that is paused is not missed", async () => {
    const { now, ends, sandbox, heart } = watched();
    now.state = "paused";
    sandbox.answers = false;
    await vi.advanceTimersByTimeAsync(600 * SECOND);
    expect({ health: now.health, ends }).toEqual({ health: "ok", ends: [] });
    heart.close();
  });
});
