/** GRD-1: what the guardian finds in real runs: what went wrong, what it does about it, and what is kept of that. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import { GUARDIAN_DETECTORS } from "../../src/base/schema/choices.ts";
import type { InputOf } from "../../src/base/schema/contracts.ts";
import type { Run, RunEvent } from "../../src/base/schema/run.ts";
import { RunLab } from "../support/agents/run-lab.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

type Detector = (typeof GUARDIAN_DETECTORS)[number];
type Step = Extract<RunEvent, { type: "guardian" }>;

interface Case {
  readonly what: string;
  readonly lines: readonly string[];
  readonly input?: Partial<InputOf<"startExperiment">>;
  readonly agent?: object;
  readonly detector: Detector;
  /** Each step that is taken, once. */
  readonly steps: readonly Step["step"][];
  readonly evidence: RegExp;
  /** cancelled: the guardian leaves it to a person, who ends it. */
  readonly outcome: Run["outcome"];
}

const REVIEW = { action: "Look.", context: "do spend priced\ndo text fine", timeout: 60 };

const CASES: readonly Case[] = [
  {
    what: "edits a test that the project has",
    lines: ["write sum.test.js changed", "hold never"],
    detector: "damage",
    // It does not do it again.
    steps: ["ask"],
    evidence: /Protected files were changed.*sum\.test\.js/,
    outcome: "cancelled",
  },
  {
    what: "deletes most of the project",
    lines: ["call rm -r pages", "hold never"],
    detector: "damage",
    steps: ["ask", "pause", "rollback"],
    evidence: /40 of the project's 4\d files are deleted/,
    // Its next turn, in which it is told of that.
    outcome: "done",
  },
  {
    what: "starts more and more processes",
    lines: ["call i=0; while [ $i -lt 112 ]; do sleep 600 >/dev/null 2>&1 & i=$((i+1)); done", "hold never"],
    input: { limits: { processes: 128 } },
    detector: "flood",
    steps: ["message", "ask", "pause", "stop"],
    evidence: /has 9\d % of the processes/,
    outcome: "failed",
  },
  {
    what: "says nothing any more",
    lines: ["call echo work > work.txt", "hold never"],
    detector: "silence",
    steps: ["message", "ask", "pause", "rollback", "restart"],
    evidence: /Nothing was heard of the agent/,
    outcome: "done",
  },
  {
    what: "spends nearly all of its budget, half of that by a reviewer",
    lines: ["spend priced", `ask reviewer ${JSON.stringify(REVIEW)}`, "hold never"],
    agent: { budget: 1.2, with: [{ role: "reviewer" }] },
    detector: "budget",
    steps: ["message"],
    evidence: /has used 8\d % of its budget/,
    outcome: "cancelled",
  },
  {
    what: "leaves its task",
    lines: ["text The task is about src/parser.js.", "call sh wander", "hold never"],
    detector: "drift",
    steps: ["message"],
    evidence: /task names .*src\/parser\.js.*lie elsewhere/,
    outcome: "cancelled",
  },
  {
    what: "fills its disk",
    lines: ["call head -c 62M /dev/urandom > large.bin; sync", "hold never"],
    input: { limits: { diskBytes: 64 * 1024 ** 2 } },
    detector: "disk",
    steps: ["message", "ask"],
    evidence: /has used 9\d % of its disk/,
    outcome: "cancelled",
  },
];

describe("the guardian of a run", needs("root", "btrfs"), () => {
  let lab: RunLab;
  let model: ScriptedModel;
  beforeAll(async () => {
    // A request costs half a dollar.
    model = await ScriptedModel.open({ priced: [{ text: "hello", usage: { input: 500_000, output: 0, thinking: 0, cacheRead: 0 } }] });
    const models = { anthropic: { url: model.url, secret: "shared" } };
    // A minute is 60 milliseconds.
    const config = { models, prices: { priced: { input: 1, output: 1 } }, guardian: { patience: 0.001 } };
    lab = RunLab.on(await TestServer.start({ config }));
    viv(lab.server, ["secret", "set", "shared", "--host", new URL(model.url).host, "--all-projects"], { input: "not-used\n" });
    const { project } = lab.server;
    writeFileSync(join(project, "sum.test.js"), "test('sum')\n");
    mkdirSync(join(project, "pages"));
    for (let page = 0; page < 40; page += 1) writeFileSync(join(project, `pages/${page}.html`), `${page}\n`);
    writeFileSync(
      join(project, "wander"),
      "mkdir -p away; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > away/$i.txt; sleep 0.05; done\n",
    );
  });
  afterAll(async () => {
    model?.close();
    await lab?.remove();
  });

  const steps = async (run: string): Promise<Step[]> => {
    const { events } = await lab.server.client.call("listRunEvents", { run, limit: 1000 });
    return events.filter((event): event is Step => event.type === "guardian");
  };
  const audited = async (run: string): Promise<AuditRecord[]> => {
    const { records } = await lab.server.client.call("listAudit", { limit: 1000 });
    return records.filter(({ target, action }) => target === run && action.startsWith("guardian."));
  };
  /** Of what is wrong with it only this. */
  const only = (detector: Detector): Detector[] => GUARDIAN_DETECTORS.filter((one) => one !== detector);

  test.each(CASES)("GRD-1: of an agent that $what finds $detector", async ({ lines, input, agent, detector, evidence, ...expected }) => {
    const { id } = await lab.begin(lines, { ...input, agent: { guardianOff: only(detector), ...agent } });
    await eventually(
      () => steps(id),
      (taken) => expected.steps.every((step) => taken.some((one) => one.step === step)),
      40_000,
    );
    if (expected.outcome === "cancelled") await lab.server.client.call("stopRun", { run: id });
    const ended = await lab.ended(id);
    expect(ended.outcome).toBe(expected.outcome);
    const taken = await steps(id);
    expect([...new Set(taken.map(({ step }) => step))]).toEqual(expected.steps);
    for (const step of taken) expect(step).toMatchObject({ detector, evidence: expect.stringMatching(evidence) as string });
    const records = await audited(id);
    expect(records).toHaveLength(taken.length);
    for (const { action, rule, reason, snapshot } of records) {
      expect([rule, reason]).toEqual([detector, expect.stringMatching(evidence)]);
      // Nothing is ended without a snapshot.
      expect([action, snapshot !== null]).toEqual([action, /rollback|restart|stop/.test(action)]);
    }
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
    expect(attempts).toMatchObject([{ snapshot: expect.any(String) as string }]);
    await lab.server.client.call("removeSandbox", { sandbox: ended.sandbox ?? "" });
  });

  /** The guardian has looked at it since: by then it knows what was spent. */
  const looked = async (run: string): Promise<unknown> => lab.waitForEvent(run, "guardian", ({ detector }) => detector === "budget");

  test("GRD-1: of an agent that adds a test, and reads again while a program runs that it left running, finds nothing; without that program it repeats itself", async () => {
    const reads = Array.from({ length: 12 }, () => "call cat hello.txt");
    const agent = {
      guardian: "warn",
      budget: 1.2,
      guardianOff: GUARDIAN_DETECTORS.filter((one) => !["budget", "damage", "repeat"].includes(one)),
    };
    const found = async (first: string): Promise<Set<string>> => {
      const { id } = await lab.begin(
        [first, "write new.test.js new", "spend priced", "spend priced", "hold /tmp/go", ...reads, "hold never"],
        {
          agent,
        },
      );
      await looked(id);
      const { sandbox } = await lab.server.client.call("inspectRun", { run: id });
      await lab.server.sh(sandbox ?? "", "touch /tmp/go");
      await lab.until(id, ({ steps: calls }) => calls === reads.length + 2);
      await lab.waitForEvent(id, "tool_result", ({ call }) => call.endsWith(`-${reads.length + 2}`));
      await lab.server.client.call("stopRun", { run: id });
      await lab.ended(id);
      return new Set((await steps(id)).map(({ detector }) => detector));
    };
    expect(await found("call sleep 600 >/dev/null 2>&1 &")).toEqual(new Set(["budget"]));
    expect(await found("call echo nothing")).toEqual(new Set(["budget", "repeat"]));
  });
});
