/** MCP-1, POL-5: what the policy asks about in run, try and execute_task goes to the person once, and no call begins the work twice. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, refusal, use, type Fields } from "../support/agents/chat-lab.ts";
import { ERAS, type ChatOptions } from "../support/mcp-client.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Asks about an action as a hook inside does, and writes down what the person said. */
const ASK = `case $(curl -sS -d '{"action":{"kind":"command","command":"deploy now"},"wait":60}' http://localhost:4097/sandbox/self/actions) in
*"A person approved it"*) echo yes > said.txt ;;
*) echo no > said.txt ;;
esac
`;

describe("a question for the person", needs("root", "curl"), () => {
  let lab: ChatLab;
  /** Of level 1 and of level 2, which the person trusts. */
  let guided: string;
  let intelligent: string;
  beforeAll(async () => {
    lab = await ChatLab.open({
      files: { "ask.sh": ASK, "vivarium.json": JSON.stringify({ policy: { bash: { "deploy *": "ask" } } }) },
    });
    [guided, intelligent] = [await trusted("guided", { level: 1 }), await trusted("intelligent", { level: 2 })];
  });
  afterAll(async () => lab?.remove());

  async function trusted(name: string, policy: object): Promise<string> {
    const project = join(lab.server.place, name);
    mkdirSync(project);
    writeFileSync(join(project, "vivarium.json"), JSON.stringify({ policy }));
    await lab.server.client.call("trust", { project });
    return project;
  }
  const open = (options: ChatOptions = {}): Promise<Client> =>
    lab.client({
      ...options,
      words: [...[lab.server.project, guided, intelligent].flatMap((path) => ["--project", path]), ...(options.words ?? [])],
    });
  const answering = (allow: boolean, asked: string[]): NonNullable<ChatOptions["person"]> => {
    return (message) => (asked.push(message), { action: "accept", content: { allow } });
  };
  const cloned = async (client: Client, project: string): Promise<string> =>
    String((await use(client, "clone", { project }))["session_id"]);
  const commandsOf = async (sandbox: string): Promise<number> =>
    (await lab.server.client.call("listCommands", { sandbox, all: true })).commands.length;
  const answer = (approval: string, given: "once" | "deny"): Promise<unknown> =>
    lab.server.client.call("answerApproval", { approval, answer: given, approver: lab.server.approver() });
  const approvalIn = ({ next }: Fields): string => /type `viv approve (apv\w+)` in a terminal/.exec(String(next))?.[1] ?? "";
  const autonomyOf = async ({ session_id }: Fields): Promise<unknown> => {
    const { sandbox } = await lab.server.client.call("inspectRun", { run: String(session_id) });
    return (await lab.server.client.call("inspectPolicy", { sandbox: sandbox ?? "" })).autonomy;
  };

  test.for(ERAS)("POL-5: of a command that runs is answered, and the same command goes on (%s)", async (era) => {
    const asked: string[] = [];
    const client = await open({ era, person: answering(true, asked) });
    const session_id = await cloned(client, lab.server.project);
    const done = await use(client, "run", { session_id, command: "sh ask.sh; cat said.txt" });
    expect(done).toMatchObject({ status: "completed", stdout: "yes\n" });
    expect(asked).toEqual([expect.stringContaining("deploy now")]);
    expect(await commandsOf(session_id)).toBe(1);
  });

  test.for(ERAS)("POL-5: of an attempt is answered, and the same experiment goes on (%s)", async (era) => {
    const asked: string[] = [];
    const client = await open({ era, person: answering(true, asked) });
    const before = (await lab.server.client.call("listExperiments", {})).experiments.length;
    const tried = await use(client, "try", { project: lab.server.project, commands: ["sh ask.sh"], checks: ["grep -qx yes said.txt"] });
    expect(tried).toMatchObject({ status: "completed", attempts: [{ checks: "passed" }] });
    expect(asked).toHaveLength(1);
    expect((await lab.server.client.call("listExperiments", {})).experiments).toHaveLength(before + 1);
  });

  test("POL-5: of run, try and wait is told with its id and the next call, where the client can't ask", async () => {
    const client = await open({ words: ["--answer-within", "2s"] });
    const session_id = await cloned(client, lab.server.project);
    const running = await use(client, "run", { session_id, command: "sh ask.sh; cat said.txt" });
    expect(running).toMatchObject({ status: "running" });
    const handle = String(running["session_id"]);
    expect(approvalIn(running)).not.toBe("");
    expect(running["next"]).toContain(`Then call wait with session_id ${handle}.`);
    expect(approvalIn(await use(client, "wait", { session_id: handle }))).toBe(approvalIn(running));
    await answer(approvalIn(running), "deny");
    const last = await eventually(
      () => use(client, "wait", { session_id: handle }),
      ({ status }) => status !== "running",
    );
    expect(last).toMatchObject({ status: "completed", stdout: "no\n" });

    const trying = await use(client, "try", { project: lab.server.project, commands: ["sh ask.sh"], checks: ["grep -qx yes said.txt"] });
    expect(trying).toMatchObject({
      status: "running",
      next: expect.stringContaining(`wait with session_id ${String(trying["session_id"])}`),
    });
    await answer(approvalIn(trying), "once");
    const tried = await eventually(
      () => use(client, "wait", { session_id: trying["session_id"] }),
      ({ status }) => status !== "running",
    );
    expect(tried).toMatchObject({ status: "completed", attempts: [{ checks: "passed" }] });
  });

  test.for(ERAS)("POL-5: is asked before a command of a chat that the project's policy asks about (%s)", async (era) => {
    const asked: string[] = [];
    const client = await open({ era, person: answering(true, asked) });
    const session_id = await cloned(client, intelligent);
    const done = await use(client, "run", { session_id, command: "git push" });
    expect(asked).toEqual([expect.stringContaining("git push")]);
    // It ran, and git says that the folder is no repository.
    expect(done).toMatchObject({ status: "failed", exit_code: 128 });
    expect(await commandsOf(session_id)).toBe(1);
    expect(await use(client, "run", { session_id, command: "ls" })).toMatchObject({ status: "completed" });
    expect(asked).toHaveLength(1);
  });

  test("POL-5: that the person answers with no ends it there, and no command runs", async () => {
    const client = await open({ person: answering(false, []) });
    const session_id = await cloned(client, intelligent);
    expect(await refusal(client, "run", { session_id, command: "git push" })).toContain("A person was asked, and said no");
    expect(await commandsOf(session_id)).toBe(0);
  });

  test("POL-5: about a command is put as an approval where the client can't ask, and run works after the person's yes", async () => {
    const client = await open();
    const session_id = await cloned(client, guided);
    const waiting = await use(client, "run", { session_id, command: "ls" });
    expect(waiting).toMatchObject({ status: "waiting", next: expect.stringContaining("call run again with the same command") });
    expect(await commandsOf(session_id)).toBe(0);
    await answer(approvalIn(waiting), "once");
    expect(await use(client, "run", { session_id, command: "ls" })).toMatchObject({ status: "completed" });
    expect(await use(client, "run", { session_id, command: "ls" })).toMatchObject({ status: "waiting" });
  });

  test("POL-5: is not put where the policy denies a command: it is refused with the rule", async () => {
    const client = await open({ person: answering(true, []) });
    const session_id = await cloned(client, guided);
    const said = await refusal(client, "run", { session_id, command: "sudo ls" });
    expect(said).toContain("The policy does not allow this command.");
    expect(said).toContain("bash: sudo *");
    expect(await commandsOf(session_id)).toBe(0);
  });

  test("POL-5: about a line of try is for run: what the policy asks about or denies is tried in no clone", async () => {
    const client = await open({ person: answering(true, []) });
    const before = (await lab.server.client.call("listExperiments", {})).experiments.length;
    const asked = await refusal(client, "try", { project: intelligent, commands: ["git push"], checks: ["test -e a"] });
    expect(asked).toMatch(/asks a person about "git push".*bash: git push/);
    expect(asked).toContain("Call clone, then run");
    const checks = await refusal(client, "try", { project: intelligent, commands: ["ls"], checks: ["sudo ls"] });
    expect(checks).toMatch(/does not allow "sudo ls"/);
    expect((await lab.server.client.call("listExperiments", {})).experiments).toHaveLength(before);
    const { sandboxes } = await lab.server.client.call("listSandboxes", {});
    expect(sandboxes.filter(({ labels }) => labels["mcp"] === "judge")).toEqual([]);
    expect(await use(client, "try", { project: intelligent, commands: ["touch a"], checks: ["test -e a"] })).toMatchObject({
      status: "completed",
    });
  });

  test("POL-4: leaves a project's own level in force where a chat names none", async () => {
    const client = await open();
    const done = await use(client, "execute_task", { task_description: "text done", project: guided });
    expect(done).toMatchObject({ status: "completed" });
    expect(await autonomyOf(done)).toMatchObject({ level: 1, yolo: null });
    const empty = await use(client, "execute_task", { task_description: "text done" });
    expect(await autonomyOf(empty)).toMatchObject({ level: null, yolo: 3 });
    const narrow = await use(client, "execute_task", { task_description: "text done", project: lab.server.project, yolo_level: 1 });
    expect(await autonomyOf(narrow)).toMatchObject({ level: null, yolo: 1 });
  });

  test.for<[string, () => Fields]>([
    ["than the default", () => ({ yolo_level: 4 })],
    ["than the project's", () => ({ yolo_level: 3, project: guided })],
  ])("POL-4: about a level that is wider %s is for the person; a model never widens by itself (attack)", async ([, more]) => {
    const input: Fields = { task_description: "text done", ...more() };
    const silent = await open();
    const said = await refusal(silent, "execute_task", input);
    expect(said).toMatch(/yolo_level \d allows more than/);
    expect(said).toContain("Call execute_task again without yolo_level");
    const runs = async (): Promise<number> => (await lab.server.client.call("listRuns", {})).runs.length;
    const before = await runs();
    const refusing = await open({ person: answering(false, []) });
    expect(await refusal(refusing, "execute_task", input)).toContain("The person did not allow yolo_level");
    expect(await runs()).toBe(before);
    for (const era of ERAS) {
      const asked: string[] = [];
      const client = await open({ era, person: answering(true, asked) });
      const done = await use(client, "execute_task", input);
      expect(asked).toEqual([expect.stringMatching(/do more without asking: yolo \d .* instead of (?:yolo 3|level 1)/)]);
      expect(await autonomyOf(done)).toMatchObject({ level: null, yolo: input["yolo_level"] });
    }
    const { sandboxes } = await lab.server.client.call("listSandboxes", {});
    expect(sandboxes.filter(({ labels }) => labels["mcp"] === "upload")).toEqual([]);
  });
});
