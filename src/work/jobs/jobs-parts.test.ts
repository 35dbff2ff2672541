/** The parts of the room that need no sandbox: the order of jobs, what is kept of their output, and which jobs are kept. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../base/schema/limits.ts";
import type { JobRow } from "../../base/store/rows.ts";
import { EndedJobs } from "./ended-jobs.ts";
import { heardOutput, JobText, shownOutput } from "./job-text.ts";
import { refuseUnsupported } from "./languages.ts";
import { WaitingJobs } from "./waiting-jobs.ts";

const row = (id: string, priority: number): JobRow => ({ id, priority }) as JobRow;

describe("waiting jobs", () => {
  test("TASK-1: the highest priority goes first, equals in their order, and one that was taken out never", () => {
    const waiting = new WaitingJobs();
    for (const [id, priority] of Object.entries({ a: 0, b: -5, c: 7, d: 0, e: 7, f: 0 })) waiting.add(row(id, priority));
    expect(waiting.take("d")?.id).toBe("d");
    expect(waiting.take("d")).toBeUndefined();
    expect(waiting.size).toBe(5);
    const order = Array.from({ length: 6 }, () => waiting.next()?.id);
    expect(order).toEqual(["c", "e", "a", "f", "b", undefined]);
    waiting.add(row("g", -100));
    expect(waiting.next()?.id).toBe("g");
  });
});

describe("a kind that the machine can't run", () => {
  test("is refused as unsupported, with what to install", () => {
    const without = (name: string) => (path: string) => path.startsWith("/usr/bin/") && !path.endsWith(name);
    const refused = (name: string): unknown => {
      try {
        return refuseUnsupported("gui", without(name));
      } catch (error) {
        return error;
      }
    };
    expect(refused("/nothing")).toBeUndefined();
    expect(refused("/xdotool")).toMatchObject({ code: "unsupported", remedy: expect.stringContaining("apt install xdotool") });
    expect(refused("")).toMatchObject({ remedy: expect.stringContaining("tigervnc-standalone-server openbox xdotool") });
    expect(() => refuseUnsupported("python", () => false)).not.toThrow();
  });
});

describe("the text of a job", () => {
  test("keeps the end of a long output, says what is missing, and cuts no character in half", () => {
    const text = new JobText();
    const euro = Buffer.from("€".repeat(1000));
    const many = Math.ceil((LIMITS.jobOutputBytes + 5000) / euro.length);
    for (let count = 0; count < many; count += 1) text.add({ stream: "stdout", data: euro });
    const dropped = many * euro.length - LIMITS.jobOutputBytes;
    const { stdout } = text.shown();
    expect(stdout).toMatch(new RegExp(`^\\[viv: ${dropped} bytes of output before this are not kept\\]\n€+$`));
    expect(shownOutput(text.kept())).toEqual(text.shown());
    expect(text.droppedBytes).toBe(dropped);
  });

  test("puts the server's words on a line of their own, and keeps bytes that are no text", () => {
    const text = new JobText();
    text.add({ stream: "stderr", data: Buffer.from([0xff, 0x41]) });
    text.say("It ended.");
    expect(text.shown().stderr).toBe("\ufffdA\nviv: It ended.\n");
    expect(heardOutput(text.kept())).toEqual([{ stream: "stderr", data: Buffer.from("\xffA\nviv: It ended.\n", "latin1") }]);
  });

  test("tells a listener what came before, then what comes", () => {
    const text = new JobText();
    text.add({ stream: "stdout", data: Buffer.from("one") });
    const heard: string[] = [];
    const leave = text.hear((chunk) => heard.push(chunk.stream === "gap" ? "gap" : chunk.data.toString()));
    text.add({ stream: "stderr", data: Buffer.from("two") });
    leave();
    text.add({ stream: "stdout", data: Buffer.from("three") });
    expect(heard).toEqual(["one", "two"]);
  });
});

describe("jobs that have ended", () => {
  const now = Date.parse("2026-01-10T00:00:00.000Z");
  const ended = (id: string, ago: number, textBytes = 1): Pick<JobRow, "id" | "endedAt" | "textBytes"> => ({
    id,
    endedAt: new Date(now - ago).toISOString(),
    textBytes,
  });

  test("go when they are too old, too many or too large, the oldest first", () => {
    const jobs = new EndedJobs();
    jobs.add(ended("old", LIMITS.keptJobMs + 1));
    jobs.add(ended("large", 1000, LIMITS.keptJobBytes));
    jobs.add(ended("new", 0));
    expect(jobs.takeSurplus(100, now)).toEqual(["old", "large"]);
    for (let count = 0; count < LIMITS.keptJobs + 4; count += 1) jobs.add(ended(String(count), 0));
    expect(jobs.takeSurplus(3, now)).toEqual(["new", "0", "1"]);
    expect(jobs.takeSurplus(100, now)).toEqual(["2", "3"]);
    expect(jobs.takeSurplus(100, now)).toEqual([]);
  });
});
