/** A project's own configuration of an agent widens nothing in a run; the same files do where the agent is run plainly. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DENIED } from "../support/agents/own-configuration.ts";
import { REAL_AGENTS, type RealAgentCase } from "../support/agents/real-agent-cases.ts";
import { RealRunLab } from "../support/agents/real-run-lab.ts";
import { PLAIN_HOME, WIDENING_CASES, type WideningCase } from "../support/agents/widening-cases.ts";
import { realAgent } from "../support/real-agents.ts";
import type { Step } from "../support/scripted-model.ts";
import { missing, needs } from "../support/skip.ts";

const PATH = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;

function caseOf(name: string): RealAgentCase {
  const found = REAL_AGENTS.find(({ agent }) => agent === name);
  if (found === undefined) throw new Error(`no case of ${name}`);
  return found;
}

async function leftIn(lab: RealRunLab, sandbox: string): Promise<string[]> {
  const { stdout } = await lab.server.sh(sandbox, `cd ${lab.server.project} && ls ran left-by-* 2>/dev/null || true`);
  return stdout.split("\n").filter((line) => line !== "");
}

async function plainly(lab: RealRunLab, program: string, { plain }: WideningCase, steps: readonly Step[]): Promise<string[]> {
  const { server, model } = lab;
  const { id } = await server.create();
  for (const [path, content] of Object.entries(plain.files))
    await server.sh(id, `mkdir -p "$(dirname ${path})" && printf %s "$CONTENT" > ${path}`, {
      env: { CONTENT: content.replaceAll("PROJECT", server.project), PATH },
    });
  await server.sh(id, `mkdir -p ${PLAIN_HOME}`, { env: { PATH } });
  model.script("demo", steps);
  await server.client.call("runCommand", { sandbox: id, command: [program, ...plain.arguments], env: { ...plain.env, PATH } });
  return leftIn(lab, id);
}

const lacking = missing("root");
const programs = new Map(await Promise.all(WIDENING_CASES.map(async ({ agent }) => [agent, await realAgent(agent)] as const)));

for (const widening of WIDENING_CASES) {
  const { agent, files, leaves } = widening;
  const { program, needed } = programs.get(agent) ?? { program: "", needed: { skip: true } };
  describe(`a project that widens what ${agent} may do`, lacking === undefined ? needed : needs("root"), () => {
    let lab: RealRunLab;
    const { run } = caseOf(agent);
    const steps: readonly Step[] = [{ calls: [run(DENIED)] }, { calls: [run("echo harmless > harmless")] }, { text: "Done." }];

    beforeAll(async () => {
      lab = await RealRunLab.with(agent, program);
      for (const [path, content] of Object.entries(files)) {
        const whole = join(lab.server.project, path);
        mkdirSync(dirname(whole), { recursive: true });
        writeFileSync(whole, content.replaceAll("PROJECT", lab.server.project));
      }
    }, 60_000);
    afterAll(async () => lab?.remove());

    test("is read by the agent alone (control)", async () => {
      expect(await plainly(lab, program, widening, steps)).toEqual([...leaves, "ran"].toSorted());
    });

    test("POL-1: is not read in a run: the denied command does not run, and no program of the project's configuration does", async () => {
      const { id } = await lab.play(steps);
      const ended = await lab.ended(id);
      expect(await leftIn(lab, ended.sandbox ?? "")).toEqual([]);
      expect(ended).toMatchObject({ outcome: "done", steps: 2 });
      expect((await lab.list(id, "tool_result")).map(({ ok }) => ok)).toContain(false);
    });
  });
}
