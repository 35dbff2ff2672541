/** DMN-1: triggers lose nothing where what they saw could not be kept, and say what they do not see. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { jsonLogger } from "../../src/base/host/log.ts";
import type { Verification } from "../../src/work/checks/verification.ts";
import { machineClock } from "../../src/work/automation/clock.ts";
import { CronLine } from "../../src/work/automation/cron-line.ts";
import type { Sighting } from "../../src/work/automation/firing-record.ts";
import { CheckTrigger } from "../../src/work/automation/triggers/check.ts";
import { CommitTrigger } from "../../src/work/automation/triggers/commit.ts";
import { FilePatterns } from "../../src/work/automation/triggers/file-patterns.ts";
import { FilesTrigger } from "../../src/work/automation/triggers/files.ts";
import { LogTrigger } from "../../src/work/automation/triggers/log.ts";
import { ScheduleTrigger } from "../../src/work/automation/triggers/schedule.ts";
import type { Cursor, TriggerSource } from "../../src/work/automation/triggers/trigger.ts";
import { memoryFolder } from "../support/folders.ts";
import { HandClock } from "../support/hand-clock.ts";
import { eventually } from "../support/server.ts";

const MINUTE = 60_000;
const log = jsonLogger(() => undefined);

/** Keeps what is told, but for the first sighting that comes: then the disk is full. */
class Store {
  readonly kept: string[] = [];
  cursor: Cursor | undefined;
  refused = 0;

  readonly saw = async (sightings: readonly Sighting[], cursor?: Cursor): Promise<void> => {
    if (sightings.length > 0 && this.refused === 0) {
      this.refused = 1;
      throw new Error("the disk is full");
    }
    this.kept.push(...sightings.map(({ text }) => text));
    this.cursor = cursor ?? this.cursor;
  };
}

describe("a trigger whose sighting could not be kept", () => {
  let folder: string;
  let store: Store;
  let source: TriggerSource | undefined;
  const none = async (): Promise<undefined> => undefined;
  const trouble = (): undefined => undefined;

  beforeEach(() => {
    folder = mkdtempSync(join(memoryFolder(), "viv-triggers-"));
    store = new Store();
  });
  afterEach(async () => {
    await source?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function started<T extends TriggerSource>(made: T): Promise<T> {
    source = made;
    await made.start();
    return made;
  }

  const told = (): Promise<string[]> =>
    eventually(
      async () => store.kept,
      (kept) => kept.length > 0,
    );

  test("of files tells it again by itself, with what changed meanwhile", async () => {
    const saw = store.saw;
    const parts = { project: folder, patterns: new FilePatterns(["*.txt"]), clock: machineClock, log, saw, trouble };
    await started(new FilesTrigger({ ...parts, causesOf: none }, {}));
    writeFileSync(join(folder, "a.txt"), "one");
    await eventually(
      async () => store.refused,
      (refused) => refused === 1,
    );
    writeFileSync(join(folder, "b.txt"), "two");
    const text = await eventually(
      async () => store.kept.join(" "),
      (kept) => kept.includes("b.txt"),
    );
    expect(text).toContain("a.txt");
  });

  test("of a schedule fires for the same time at its next look", async () => {
    const clock = new HandClock("2030-01-01T02:59:00Z");
    await started(new ScheduleTrigger(new CronLine("0 3 * * *", "UTC"), clock, {}, store.saw));
    await clock.pass(5 * MINUTE);
    expect(store).toMatchObject({ refused: 1, kept: ["It was due at 2030-01-01T03:00:00.000Z."] });
  });

  test("of a log reads the line again", async () => {
    const file = join(folder, "app.log");
    writeFileSync(file, "");
    const clock = new HandClock("2030-01-01T00:00:00Z");
    await started(new LogTrigger({ file, line: "*ERROR*", clock, saw: store.saw, trouble, causesOf: none }, { inode: null, offset: 0 }));
    appendFileSync(file, "ERROR one\n");
    await eventually(
      async () => store.refused,
      (refused) => refused === 1,
    );
    appendFileSync(file, "fine\n");
    expect(await told()).toEqual(["ERROR one"]);
  });

  test("of a commit fires for the same commit", async () => {
    const git = (...args: string[]): string =>
      execFileSync("git", ["-C", folder, "-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { encoding: "utf8" }).trim();
    git("init", "-q", "-b", "main");
    git("commit", "-q", "--allow-empty", "-m", "one");
    const first = git("rev-parse", "main");
    git("commit", "-q", "--allow-empty", "-m", "two");
    const clock = new HandClock("2030-01-01T00:00:00Z");
    const parts = { project: folder, branch: "main", remote: undefined, everyMs: MINUTE, env: {}, clock, saw: store.saw, trouble };
    await started(new CommitTrigger({ ...parts, causesOf: none }, { commit: first }));
    await eventually(
      async () => store.refused,
      (refused) => refused === 1,
    );
    await eventually(
      async () => {
        await clock.pass(2 * MINUTE);
        return store.kept;
      },
      (kept) => kept.length > 0,
    );
    expect(store.cursor).toEqual({ commit: git("rev-parse", "main") });
  });

  test("of a check fires at its next run", async () => {
    const clock = new HandClock("2030-01-01T00:00:00Z");
    const failing = { command: "npm test", passed: false, exitCode: 1, cause: null, output: "" };
    const verification = { verifyOn: async () => ({ passed: false, checks: [failing], measure: null, setup: null }) };
    const parts = { project: folder, command: "npm test", env: {}, timeoutMs: undefined, everyMs: MINUTE, clock, saw: store.saw, trouble };
    await started(new CheckTrigger({ ...parts, setup: none, verification: verification as unknown as Verification }, {}));
    await clock.pass(3 * MINUTE);
    expect(store).toMatchObject({ refused: 1, kept: ["`npm test` ended with 1.\n"] });
  });
});

describe("a trigger of files", () => {
  test("says that there are more files than it watches, and how many it watches", async () => {
    const folder = mkdtempSync(join(memoryFolder(), "viv-triggers-"));
    mkdirSync(join(folder, "src"));
    for (const name of ["a", "b", "c"]) writeFileSync(join(folder, "src", name), name);
    const said: (string | null)[] = [];
    const parts = { project: folder, patterns: new FilePatterns(["src"]), clock: machineClock, log, mostFiles: 2 };
    const trigger = new FilesTrigger(
      { ...parts, saw: async () => undefined, trouble: (reason) => said.push(reason), causesOf: async () => undefined },
      {},
    );
    expect((await trigger.look()).seen).toBe("It rests: no files are watched.");
    await trigger.start();
    expect(said).toEqual(["More than 2 files match: changes of those beyond are not seen. Narrow its paths."]);
    expect((await trigger.look()).seen).toBe("2 files are watched.");
    await trigger.stop();
    rmSync(folder, { recursive: true });
  });
});
