/** One real agent takes over the work of another, with its files and with what was said and done. */
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REAL_AGENTS } from "../support/agents/real-agent-cases.ts";
import { RealRunLab } from "../support/agents/real-run-lab.ts";
import { realAgent } from "../support/real-agents.ts";
import { missing, needs } from "../support/skip.ts";

const lacking = missing("root");
const programs = new Map(await Promise.all(["claude", "codex"].map(async (name) => [name, await realAgent(name)] as const)));
const [from, to] = ["claude", "codex"].map((name) => REAL_AGENTS.find(({ agent }) => agent === name));
const both = [from, to].map((one) => programs.get(one?.agent ?? "")?.needed ?? { skip: true }).find(({ skip }) => skip === true) ?? {};

describe("a run that Claude Code hands to Codex", lacking === undefined ? both : needs("root"), () => {
  let lab: RealRunLab;
  beforeAll(async () => {
    lab = await RealRunLab.with("claude", programs.get("claude")?.program ?? "");
  }, 60_000);
  afterAll(async () => lab?.remove());

  test("AGT-6: goes on with its files and with what was said and done", async () => {
    if (from === undefined || to === undefined) throw new Error("both are in the table");
    const { id: first } = await lab.play([
      { text: "The parser drops empty lines.", calls: [from.run("echo half > work.txt")] },
      { text: "I stop half-way." },
    ]);
    expect(await lab.ended(first)).toMatchObject({ outcome: "done", agent: "claude" });
    const PATH = `${dirname(programs.get("codex")?.program ?? "")}:/usr/local/bin:/usr/bin:/bin`;
    const { id: second } = await lab.play([{ calls: [to.run("cat work.txt; echo whole >> work.txt")] }, { text: "Now it is whole." }], {
      agent: { agent: "codex", task: "Go on." },
      from: first,
      env: { PATH },
    });
    const ended = await lab.ended(second);
    expect(ended).toMatchObject({ outcome: "done", agent: "codex", from: first, steps: 1 });
    expect((await lab.server.sh(ended.sandbox ?? "", "cat work.txt")).stdout).toBe("half\nwhole\n");
    const asked = JSON.stringify(lab.requests[0]?.body);
    for (const known of ["You take over the work", "Do it.", "The parser drops empty lines.", "echo half > work.txt", "Go on."])
      expect(asked).toContain(known);
  });
});
