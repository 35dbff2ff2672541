/** GRD-2: the guardian against a real agent that is stuck, from the first message to the stop, with its work kept. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RealRunLab } from "../support/agents/real-run-lab.ts";
import { realAgent } from "../support/real-agents.ts";
import type { ModelRequest, Step } from "../support/scripted-model.ts";
import { missing, needs } from "../support/skip.ts";

const bash = (command: string): Step => ({ calls: [{ name: "Bash", input: { command, description: "d" } }] });
/** Of what is wrong with it only that it repeats itself. */
const ONLY_LOOPS = { guardian: "full", guardianOff: ["flood", "no_progress", "silence", "same_error", "spending", "monologue"] };

/** Good work, an action before which a snapshot is taken, work after that, and then the same failing call without end. */
function stuck({ body, tools }: ModelRequest): Step {
  const known = JSON.stringify(body);
  if (tools.length === 0) return { text: "A title." };
  if (!known.includes("good.txt")) return { text: "I begin.", ...bash("echo good > good.txt") };
  if (!known.includes("git checkout")) return bash("git checkout -- . ; true");
  if (!known.includes("later.txt") && !/brought the files back|worked on this before/.test(known)) return bash("echo later > later.txt");
  return bash("cat no-such-file");
}

const { program, needed } = await realAgent("claude");

describe("the guardian of Claude Code that is stuck", missing("root") === undefined ? needed : needs("root"), () => {
  let lab: RealRunLab;
  beforeAll(async () => {
    // Two minutes are 0.6 seconds.
    lab = await RealRunLab.with("claude", program, {}, { guardian: { patience: 0.005 } });
  }, 60_000);
  afterAll(async () => lab?.remove());

  test("GRD-2: tells it, asks a person, pauses it, rolls files and conversation back, restarts it, and stops it with its work kept", async () => {
    const { id } = await lab.play(stuck, { agent: ONLY_LOOPS });
    const rolledBack = lab.waitForEvent(id, "guardian", ({ step }) => step === "rollback");
    await lab.until(id, ({ state }) => state === "paused");
    await rolledBack;
    const ended = await lab.ended(id);
    expect(ended).toMatchObject({ state: "failed", outcome: "failed", reason: expect.stringContaining("stuck") as string });
    const taken = await lab.list(id, "guardian");
    expect([...new Set(taken.map(({ step }) => step))]).toEqual(["message", "ask", "pause", "rollback", "restart", "stop"]);
    for (const { detector, evidence } of taken) expect([detector, evidence]).toEqual(["repeat", expect.stringMatching(/no-such-file/)]);
    // The model read what the guardian said, and after the rollback what it is told then, in its own conversation.
    const read = lab.requests.map(({ body }) => JSON.stringify(body));
    const { messages } = await lab.server.client.call("listRunMessages", { run: id });
    const said = messages.filter(({ from }) => from === "guardian");
    expect(said[0]).toMatchObject({ state: "delivered" });
    expect(read.some((body) => body.includes(JSON.stringify(said[0]?.text.split("\n")[0]).slice(1, -1)))).toBe(true);
    expect(read.some((body) => body.includes("I begin.") && body.includes("brought the files back"))).toBe(true);
    expect(read.some((body) => body.includes("worked on this before you and was ended"))).toBe(true);
    // What was done before the loop is kept; what came after the snapshot went with the rollback.
    const { attempts } = await lab.server.client.call("inspectExperiment", { experiment: ended.experiment ?? "" });
    expect(attempts).toMatchObject([{ state: "failed", diff: { files: 1 }, snapshot: expect.any(String) as string }]);
    expect((await lab.server.sh(ended.sandbox ?? "", "ls")).stdout.split("\n")).toEqual(["good.txt", "hello.txt", ""]);
    const { records } = await lab.server.client.call("listAudit", { limit: 1000 });
    const audited = records.filter(({ target, action }) => target === id && action.startsWith("guardian."));
    expect(audited.map(({ action }) => action.replace("guardian.", ""))).toEqual(taken.map(({ step }) => step));
    for (const { action, snapshot } of audited) expect([action, snapshot !== null]).toEqual([action, /rollback|restart|stop/.test(action)]);
  });
});
