/** Actions of agents in real sandboxes, put to the gateway by curl inside: what each level allows, asks and denies. */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyAction, Verdict } from "../../src/base/schema/policy.ts";
import { act, line } from "../support/inside.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

type Chosen = { level: 1 | 2 | 3 } | { yolo: 1 | 2 | 3 | 4 };
type Row = readonly [PolicyAction | string, Verdict];

const edit = (path: string): PolicyAction => ({ kind: "tool", tool: "edit", argument: path });
const host = (name: string): PolicyAction => ({ kind: "host", host: name });
const write = (path: string): PolicyAction => ({ kind: "path", path, access: "write" });
const promotion: PolicyAction = { kind: "promotion", stage: "dev" };

/** What holds whatever an agent was given. */
const WALLS: readonly Row[] = [
  [host("169.254.169.254"), "deny"],
  [host("shop.production.test"), "deny"],
  ["curl https://shop.production.test/", "deny"],
  [promotion, "ask"],
];
const EXPECTED: readonly (readonly [Chosen, readonly Row[]])[] = [
  [
    { level: 1 },
    [
      ["npm test", "allow"],
      [edit("src/a.ts"), "allow"],
      ["ls", "ask"],
      [write("/etc/hosts"), "deny"],
      ["rm -rf build", "deny"],
      ["sudo ls", "deny"],
    ],
  ],
  [
    { level: 2 },
    [
      [edit("src/a.ts"), "allow"],
      ["npm test", "allow"],
      [edit("package.json"), "ask"],
      [edit("tsconfig.json"), "ask"],
      ["rm a.txt", "ask"],
      ["git push origin main", "ask"],
      ["curl https://api.example.com/orders", "ask"],
      ["sudo ls", "deny"],
    ],
  ],
  [
    { level: 3 },
    [
      ["python3 app.py", "allow"],
      [edit("package.json"), "allow"],
      ["rm a.txt", "allow"],
      ["curl https://api.example.com/", "allow"],
      ["git push", "ask"],
      ["sudo ls", "deny"],
    ],
  ],
  [
    { yolo: 1 },
    [
      ["cp a b", "allow"],
      ["curl https://api.example.com/", "ask"],
      ["python3 app.py", "ask"],
      ["sudo ls", "deny"],
    ],
  ],
  [
    { yolo: 2 },
    [
      ["cp a b", "allow"],
      ["curl https://api.example.com/", "allow"],
      ["python3 app.py", "ask"],
      ["sudo ls", "deny"],
    ],
  ],
  [
    { yolo: 3 },
    [
      ["python3 app.py", "allow"],
      ["git push", "allow"],
      ["sudo ls", "deny"],
      [host("10.0.0.1"), "deny"],
    ],
  ],
  [
    { yolo: 4 },
    [
      ["sudo ls", "allow"],
      ["git push --force", "allow"],
      [host("10.0.0.1"), "deny"],
    ],
  ],
];

describe("an action put to the gateway", needs("root", "curl"), () => {
  let server: TestServer;
  const answer = (approval: string | undefined, how: "once" | "always" | "deny") =>
    server.client.call("answerApproval", { approval: approval ?? "", answer: how, approver: server.approver() });
  const set = (sandbox: string, change: object) => server.client.call("setPolicy", { sandbox, approver: server.approver(), ...change });
  const records = async (sandbox: string) => (await server.client.call("listDecisions", { sandbox, limit: 1000 })).records;
  const verdicts = async (box: string, actions: readonly (PolicyAction | string)[]): Promise<Verdict[]> =>
    (await act(server, box, actions)).map(({ verdict }) => verdict);

  beforeAll(async () => {
    server = await TestServer.start({
      config: { expose: [dirname(dirname(process.execPath))] },
      files: { "vivarium.json": JSON.stringify({ network: { production: ["*.production.test"] } }), "a.txt": "a\n" },
    });
  });
  afterAll(async () => server?.remove());

  for (const [chosen, rows] of EXPECTED) {
    test(`POL-3 POL-4 POL-10: has the verdict of ${JSON.stringify(chosen)}, the same as explain tells`, async () => {
      const { id, autonomy } = await server.create(chosen);
      expect(autonomy).toEqual({ level: null, yolo: null, role: "worker", ...chosen });
      const all = [...rows, ...WALLS];
      expect(
        await verdicts(
          id,
          all.map(([action]) => action),
        ),
      ).toEqual(all.map(([, verdict]) => verdict));
      for (const [action, verdict] of rows) {
        const told = await server.client.call("explainPolicy", { sandbox: id, action: typeof action === "string" ? line(action) : action });
        expect(told.verdict).toBe(verdict);
      }
    });
  }

  test("POL-4: has the verdict of yolo 3 where no level was chosen", async () => {
    const { id } = await server.create();
    expect(await verdicts(id, ["python3 app.py", "sudo ls"])).toEqual(["allow", "deny"]);
    expect((await server.client.call("inspectPolicy", { sandbox: id })).autonomy).toEqual({ level: null, yolo: 3, role: "worker" });
  });

  test("POL-3 POL-7: has another verdict at once when a person changes level or role, and a fork has its parent's", async () => {
    const { id } = await server.create({ level: 1 });
    expect(await verdicts(id, ["ls"])).toEqual(["ask"]);
    await set(id, { yolo: 4 });
    expect(await verdicts(id, ["ls", "sudo ls"])).toEqual(["allow", "allow"]);
    await set(id, { role: "reviewer" });
    expect(await verdicts(id, ["ls", edit("a.txt"), write("a.txt"), { kind: "tool", tool: "read", argument: "a.txt" }])).toEqual([
      "deny",
      "deny",
      "deny",
      "allow",
    ]);
    const { sandboxes: forks } = await server.client.call("forkSandbox", { sandbox: id });
    expect(forks[0]?.autonomy).toEqual({ level: null, yolo: 4, role: "reviewer" });
    const other = await server.client.call("forkSandbox", { sandbox: id, level: 2, role: "worker" });
    expect(other.sandboxes[0]?.autonomy).toEqual({ level: 2, yolo: null, role: "worker" });
    expect((await records(id)).filter(({ action }) => action === "policy.set")).toMatchObject([
      { actor: { kind: "person" }, arguments: { before: { level: 1 }, after: { yolo: 4 } } },
      { actor: { kind: "person" }, arguments: { after: { yolo: 4, role: "reviewer" } } },
    ]);
  });

  test("POL-7: a role without the tool asks no sibling and gets no resources through the gateway either", async () => {
    const [one, two] = [await server.create({ role: "reviewer" }), await server.create()];
    const post = async (box: string, path: string, body: object): Promise<string> =>
      (await server.sh(box, `curl -s -w ' %{http_code}' -d '${JSON.stringify(body)}' http://localhost:4097/sandbox/${path}`)).stdout;
    const wishes = [["self/resources", { cpus: 1 }] as const, [`${two.name}/coordinate`, { action: "x", timeout: 1 }] as const];
    for (const [path, body] of wishes) expect(await post(one.id, path, body)).toMatch(/"code":"denied".* 403$/s);
    const refused = (await records(one.id)).filter(({ label }) => label === "DENIED");
    expect(refused.map(({ action, label, rule }) => `${action} ${label} ${rule}`)).toEqual([
      "request_resources DENIED role reviewer",
      "coordinate_sibling DENIED role reviewer",
    ]);
    await set(one.id, { role: "worker" });
    expect(await post(one.id, "self/resources", { cpus: 1 })).toMatch(/"granted":true.* 200$/s);
    // The sibling does not answer, but it was asked.
    expect(await post(one.id, `${two.name}/coordinate`, { action: "x", timeout: 1 })).toMatch(/"code":"timeout"/);
  });

  test("AP-13: is decided by reality's config alone, and nothing inside answers a question or changes the policy", async () => {
    const { id } = await server.create({ level: 2 });
    const allowed = JSON.stringify({ policy: { yolo: 4, bash: "allow" } });
    await server.sh(id, `printf '%s' '${allowed}' > vivarium.json`);
    const [asked] = await act(server, id, ["git push"]);
    expect(asked).toMatchObject({ verdict: "ask", approval: { state: "waiting" } });
    const inside = async (path: string, body: object): Promise<number> => {
      const command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", JSON.stringify(body), `http://localhost:4097${path}`];
      return Number((await server.client.call("runCommand", { sandbox: id, command })).stdout);
    };
    const approval = asked?.approval?.id;
    const forged = { answer: "once", approver: server.approver(), operator: true };
    for (const path of [`/sandbox/self/approvals/${approval}/answer`, `/approvals/${approval}/answer`, `/sandbox/self/policy`])
      expect(await inside(path, forged)).toBe(404);
    expect(await inside("/sandbox/self/actions", { action: line("git push"), approver: server.approver(), verdict: "allow" })).toBe(400);
    expect(await verdicts(id, ["git push"])).toEqual(["ask"]);
    // The same answer through a person's channel counts, and the same config in reality, once it is trusted, does too.
    await answer(approval, "once");
    expect(await verdicts(id, ["git push", "git push"])).toEqual(["allow", "ask"]);
    const before = readFileSync(join(server.project, "vivarium.json"));
    writeFileSync(
      join(server.project, "vivarium.json"),
      JSON.stringify({ policy: { bash: { "git fetch *": "allow", "git push *": "allow" } } }),
    );
    expect(await verdicts(id, ["git push x"])).toEqual(["ask"]);
    await server.client.call("trust", { project: server.project, dryRun: false });
    expect(await verdicts(id, ["git push x"])).toEqual(["allow"]);
    writeFileSync(join(server.project, "vivarium.json"), before);
  });

  test("AP-15: is judged by its strictest part, and what hides a denied command does not run it", async () => {
    const { id } = await server.create({ level: 1 });
    const tricks = [
      "npm test; sudo ls",
      "npm test $(sudo ls)",
      "npm test `sudo ls`",
      "npm test\nsudo ls",
      "env X=1 sudo ls",
      "sh -c 'sudo ls'",
      "xargs sudo ls",
      "find . -exec sudo ls ';'",
    ];
    expect(await verdicts(id, tricks)).toEqual(tricks.map(() => "deny"));
    // Each is denied for the command it hides: without that it is not.
    const harmless = tricks.map((trick) => trick.replace("sudo ls", "npm ls"));
    expect(await verdicts(id, harmless)).not.toContain("deny");
  });

  test("POL-5: waits for a person, who answers it outside; always holds for siblings, and is shown with its rule and taken back", async () => {
    const [one, two] = [await server.create({ level: 2 }), await server.create({ level: 2 })];
    const command = "git push origin main";
    const waiting = act(server, one.id, [command], { wait: 60 });
    const { approvals } = await eventually(
      () => server.client.call("listApprovals", {}),
      (list) => list.approvals.some(({ sandbox }) => sandbox === one.id),
    );
    const asked = approvals.find(({ sandbox }) => sandbox === one.id);
    expect(asked).toMatchObject({ target: command, always: `bash: ${command}`, action: line(command) });
    await answer(asked?.id, "always");
    expect(await waiting).toMatchObject([{ verdict: "allow" }]);
    expect(await act(server, two.id, [command, `${command} --force`])).toMatchObject([
      { verdict: "allow", rule: `always: bash: ${command}` },
      { verdict: "ask" },
    ]);
    const shown = viv(server, ["policy", "rules"]);
    expect(shown.out).toContain(`bash: ${command}`);
    expect(viv(server, ["policy", "forget", asked?.id ?? ""])).toMatchObject({ code: 0 });
    expect(await verdicts(two.id, [command])).toEqual(["ask"]);
  });

  test("POL-8: is told ahead: the policy inside is the one that is enforced", async () => {
    const { id } = await server.create({ level: 1, role: "coordinator" });
    const { stdout } = await server.sh(id, "curl -sS http://localhost:4097/sandbox/self/policy");
    const policy = JSON.parse(stdout);
    expect(policy).toMatchObject({
      title: "level 1 (guided)",
      autonomy: { level: 1, yolo: null, role: "coordinator" },
      production: ["*.production.test"],
    });
    expect(policy).toEqual(await server.client.call("inspectPolicy", { sandbox: id }));
    expect(policy.text).toBe((await server.client.call("agentInstructions", { sandbox: id })).text);
    expect(await verdicts(id, ["ls", { kind: "tool", tool: "create_task", argument: "x" }])).toEqual(["deny", "allow"]);
  });

  test("AU-10: every verdict, answer and change of a scripted run has exactly one record with actor, hash and result", async () => {
    const { id } = await server.create({ level: 2 });
    const first = await act(server, id, ["npm test", "sudo ls", "git push 1", "git push 2", "git push 3", "sudo id"]);
    expect(first.map(({ verdict }) => verdict)).toEqual(["allow", "deny", "ask", "ask", "ask", "deny"]);
    const [, , once, no, always] = first;
    await answer(once?.approval?.id, "once");
    await answer(no?.approval?.id, "deny");
    await answer(always?.approval?.id, "always");
    expect(await verdicts(id, ["git push 1", "git push 1", "git push 2", "git push 3", "git push 3"])).toEqual([
      "allow",
      "ask",
      "deny",
      "allow",
      "allow",
    ]);
    await set(id, { yolo: 1 });
    await set(id, { role: "reviewer" });
    await server.client.call("forgetRule", { rule: always?.approval?.id ?? "" });
    // Besides, the person has made the sandbox and run programs in it.
    const all = (await records(id)).filter(({ action }) => ["bash", "approval", "policy.set", "policy.forget"].includes(action));
    const counts: Record<string, number> = {};
    for (const { actor, action, label } of all) {
      const kind = `${actor.kind} ${action} ${label}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    expect(counts).toEqual({
      // npm test, and git push 3 twice: once with the answer itself, once by its rule.
      "agent bash AUTONOMOUS (whitelisted)": 3,
      "agent bash DENIED": 3,
      "agent bash RECORDED": 4,
      "agent bash APPROVED": 1,
      "person approval APPROVED": 2,
      "person approval DENIED": 1,
      "person policy.set RECORDED": 2,
      "person policy.forget RECORDED": 1,
    });
    const decided = all.filter(({ action }) => action === "bash" || action === "approval");
    expect(decided.every(({ arguments: details }) => /"hash":"[0-9a-f]{64}"/.test(JSON.stringify(details)))).toBe(true);
    expect(await server.client.call("verifyAudit", {})).toMatchObject({ whole: true });
  });
});
