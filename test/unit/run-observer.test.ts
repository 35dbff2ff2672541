/** What the server sees of a run, for its guardian. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RunEvent, RunEventBody } from "../../src/base/schema/run.ts";
import { BackgroundPrograms } from "../../src/work/agents/background-programs.ts";
import { countFiles } from "../../src/work/agents/project-size.ts";
import { RunObserver, type ObserverParts } from "../../src/work/agents/run-observer.ts";
import { corpusRuns, momentsOf } from "../support/guardian-corpus.ts";
import { memoryFolder } from "../support/folders.ts";
import { aSandboxRow } from "../support/rows.ts";

const BEGIN = Date.UTC(2026, 10, 16, 9);
const VITEST = (failed: number): string => ` Test Files  1 failed (1)\n      Tests  ${failed} failed | 30 passed (${failed + 30})\n`;

function events(...bodies: readonly RunEventBody[]): RunEvent[] {
  return bodies.map((body, index) => ({ ...body, sequence: index + 1, at: new Date(BEGIN + index * 10_000).toISOString() }));
}

function command(call: string, line: string, output = "", ok = true): [RunEventBody, RunEventBody] {
  return [
    { type: "tool_call", call, tool: "Bash", kind: "command", input: { command: line } },
    { type: "tool_result", call, tool: "Bash", ok, output },
  ];
}

/** An observer of a sandbox of which everything is known. */
function observer(more: Partial<ObserverParts> = {}): RunObserver {
  const sandbox = aSandboxRow();
  const row = { id: "run-a", sandbox: sandbox.id, steps: 4, mostSteps: 8, budget: 2, activity: "person", with: [{ role: "reviewer" }] };
  const walls = {
    usage: async () => ({ memoryBytes: 10, cpuMs: 5, processes: 3, outOfMemory: 0, tooManyProcesses: 0 }),
    processes: async () => [{ pid: 7, startedAt: new Date(BEGIN), state: "S" }],
  };
  const reviewer = { askedBy: "run-a", sandbox: "sbx-reviewer" };
  return new RunObserver({
    parts: {
      store: {
        usage: { spent: async ({ sandbox: of }: { sandbox: string }) => (of === sandbox.id ? 500_000 : 1_100_000) },
        runs: { list: async () => [reviewer] },
      },
      live: { get: () => ({ walls }) },
      backends: { of: () => ({ storage: { capabilities: { quota: "hard" }, disks: { usage: async () => 1 } } }) },
    },
    models: { openRequests: () => 1 },
    work: { journal: { row }, sandbox, isPaused: async () => false },
    clone: { look: async () => ({ hash: "c1", files: { added: 0, deleted: 1, project: null } }), changed: () => undefined },
    usesGateway: true,
    checks: ["npm test"],
    ...more,
  } as unknown as ObserverParts);
}

describe("what is seen of a run", () => {
  test("GRD-1: has every field that runs of the corpus have", async () => {
    const used = new Set(
      corpusRuns().flatMap((run) => momentsOf(run).flatMap((moment) => ("seen" in moment ? Object.keys(moment.seen) : []))),
    );
    const one = observer();
    const looked = await one.look();
    const heard = events(...command("c1", "npm test", VITEST(2), false)).map((event) => one.heard(event));
    const seen = new Set(Object.keys(Object.assign({}, looked, ...heard)));
    expect([...used].filter((field) => !seen.has(field))).toEqual([]);
    expect(looked.use).toEqual({
      budget: 0.8,
      steps: 0.5,
      memory: expect.any(Number) as number,
      processes: 3 / 4096,
      disk: expect.any(Number) as number,
    });
  });

  test("AGT-5: has in its cost what a reviewer spent that it asked", async () => {
    expect(await observer().look()).toMatchObject({ cost: 1.6, use: { budget: 0.8 } });
  });

  test("GRD-1: says nothing about model requests of an agent that was never seen to ask by the gateway", async () => {
    const store = { usage: { spent: async () => 0 }, runs: { list: async () => [] } };
    const parts = { ...observerParts(), store };
    const unseen = observer({ usesGateway: false, models: { openRequests: () => 0 }, parts: parts as unknown as ObserverParts["parts"] });
    expect(await unseen.look()).not.toHaveProperty("modelRequests");
    expect(await observer({ usesGateway: false }).look()).toHaveProperty("modelRequests", 1);
  });

  test("GRD-1: has the counts of a check of the run that the agent ran, alone or among other commands", () => {
    const one = observer();
    const seen = (line: string, output: string): unknown =>
      events(...command("c", line, output)).map((event) => one.heard(event))[1]?.check;
    expect(seen("npm test", VITEST(2))).toEqual({ passed: 30, failed: 2 });
    expect(seen("cd src && npm test 2>&1 | tail -20", VITEST(1))).toEqual({ passed: 30, failed: 1 });
    expect(seen("npm test -- one.test.ts", VITEST(1))).toEqual({ passed: 30, failed: 1 });
    expect(seen("npm run test-data", VITEST(1))).toBe(undefined);
    // A check whose tests can't be counted says too little: it may fail less than before.
    expect(seen("npm test", "error TS2304")).toBe(undefined);
  });
});

function observerParts(): object {
  return {
    live: { get: () => undefined },
    backends: { of: () => ({ storage: { capabilities: { quota: "none" } } }) },
  };
}

describe("programs that an agent left running", () => {
  const at = (seconds: number): Date => new Date(BEGIN + seconds * 1000);

  test("GRD-1: are those that began while a command ran and are there after it, for as long as they are", () => {
    const programs = new BackgroundPrograms();
    // It began a moment before its first word, and that a moment before its first call.
    const agent = { pid: 1, startedAt: at(-0.1) };
    const toolServer = { pid: 2, startedAt: at(25) };
    const build = { pid: 3, startedAt: at(15) };
    const [first, call, result] = events(
      { type: "started", agent: "claude", version: null, model: null, conversation: null },
      ...command("c1", "make > build.log 2>&1 &"),
    ).map((event, index) => (index === 1 ? { ...event, at: new Date(BEGIN + 100).toISOString() } : event));
    for (const event of [first, call]) if (event !== undefined) programs.heard(event);
    // The command itself still runs.
    expect(programs.count([agent, build])).toBe(0);
    if (result !== undefined) programs.heard(result);
    expect(programs.count([agent, toolServer, build])).toBe(1);
    // Its clock was read a little differently.
    expect(programs.count([agent, toolServer, { ...build, startedAt: at(15.01) }])).toBe(1);
    expect(programs.count([agent, toolServer])).toBe(0);
    // Another process has its number now.
    expect(programs.count([agent, { pid: 3, startedAt: at(90) }])).toBe(0);
  });
});

describe("the size of a project", () => {
  test("counts its files without those of git and those that tools make, each path once", async () => {
    const place = mkdtempSync(join(memoryFolder(), "viv-size-"));
    try {
      for (const path of [
        "top/src/a.ts",
        "low/src/a.ts",
        "low/src/b.ts",
        "low/README.md",
        "low/.git/HEAD",
        "low/node_modules/x/index.js",
        "low/run.log",
      ]) {
        mkdirSync(dirname(join(place, path)), { recursive: true });
        writeFileSync(join(place, path), "x");
      }
      expect(await countFiles([join(place, "top"), join(place, "low")])).toBe(3);
    } finally {
      rmSync(place, { recursive: true });
    }
  });
});
