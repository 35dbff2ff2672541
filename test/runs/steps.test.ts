/** POL-7, AGT-5: how many steps a run may take is one number: what its agent is told, what is shown, and what is held. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { needs } from "../support/skip.ts";

/** Prints what its program was told about steps when it was started. */
const TOLD = "call tr '\\0' '\\n' < /proc/$PPID/cmdline | grep -o 'You have [0-9]* steps' || echo nothing";

describe("the steps of a run", needs("root"), () => {
  let lab: RunLab;
  beforeAll(async () => {
    // The guardian looks ten times a second, and does not stop a run that keeps to its limit either.
    lab = await RunLab.open({ guardian: { patience: 0.001 } });
  });
  afterAll(async () => lab?.remove());

  /** A run that makes so many calls, and then says that it has ended. */
  const working = async (calls: number, agent: object): Promise<string> => {
    const more = Array.from({ length: calls - 1 }, (_, at) => `call echo ${at}`);
    return (
      await lab.begin([TOLD, ...more, "hold go", "text the end"], { agent: { guardianOff: ["silence"], ...agent }, timeoutMs: 60_000 })
    ).id;
  };
  const told = async (id: string): Promise<string> => (await lab.waitForEvent(id, "tool_result")).output.trim();

  /** What is told, shown and held for such a run: of one that takes all of its steps, and of one that takes one more. */
  const limits = async (agent: object, calls: number): Promise<unknown> => {
    const { client } = lab.server;
    const kept = await working(calls, agent);
    const { sandbox, mostSteps } = await lab.until(kept, ({ steps }) => steps === calls);
    await lab.waitForEvent(kept, "tool_result", ({ call }) => call.endsWith(`-${calls}`));
    const { maxSteps, text } = await client.call("inspectPolicy", { sandbox: sandbox ?? "" });
    const inside = await lab.server.sh(sandbox ?? "", "curl -s http://127.0.0.1:4097/sandbox/self/policy; touch go");
    const { outcome } = await lab.ended(kept);
    const over = mostSteps === null ? null : (await lab.ended(await working(calls + 1, agent))).reason;
    return {
      told: await told(kept),
      shown: [mostSteps, maxSteps, /You have \d+ steps/.exec(text)?.[0] ?? "nothing"],
      inside: (JSON.parse(inside.stdout) as { maxSteps: unknown }).maxSteps,
      held: [outcome, over],
    };
  };
  const all = (steps: number): object => ({
    told: `You have ${steps} steps`,
    shown: [steps, steps, `You have ${steps} steps`],
    inside: steps,
    held: ["done", `It used its ${steps} steps.`],
  });

  test("POL-7: have no limit where no person and no config sets one", async () => {
    expect(await limits({}, 12)).toEqual({ told: "nothing", shown: [null, null, "nothing"], inside: null, held: ["done", null] });
  });

  test("AGT-5: are those that the person who started it gave", async () => {
    expect(await limits({ steps: 3 }, 3)).toEqual(all(3));
  });

  test("POL-7: are those of its role in the project's trusted config, unless a person gave others", async () => {
    const { project, client } = lab.server;
    writeFileSync(join(project, "vivarium.json"), JSON.stringify({ policy: { roles: { worker: { maxSteps: 4 } } } }));
    await client.call("trust", { project });
    expect(await limits({}, 4)).toEqual(all(4));
    expect(await limits({ steps: 6 }, 6)).toEqual(all(6));
  });
});
