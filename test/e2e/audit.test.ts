/** The audit trail of a real server: what people, agents and the proxy do, counted, and which changes to it are found. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import { ROUTES, STREAMS } from "../../src/base/schema/routes.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

const CANARY = "canary-7f3a9c51d2e84b60";

describe("the audit trail of a server", needs("root", "curl"), () => {
  let server: TestServer;
  let web: Server;
  let port: number;

  beforeAll(async () => {
    web = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    server = await TestServer.start({
      config: { network: { mode: "off", private: [{ host: "127.0.0.2", ports: [port] }] } },
      files: { "a.txt": "a\n", "vivarium.json": JSON.stringify({ network: { mode: "allow-list" } }) },
    });
    execFileSync("git", ["add", "."], { cwd: server.project });
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-qm", "first"], { cwd: server.project });
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    await server?.remove();
  });

  async function records(sandbox?: string): Promise<AuditRecord[]> {
    const all: AuditRecord[] = [];
    for (;;) {
      const after = all.at(-1)?.sequence ?? 0;
      const page = (await server.client.call("listAudit", { after, limit: 1000, ...(sandbox === undefined ? {} : { sandbox }) })).records;
      all.push(...page);
      if (page.length < 1000) return all;
    }
  }

  /** How often each action is there, of records after a place. */
  async function counts(after: number): Promise<Record<string, number>> {
    const found: Record<string, number> = {};
    for (const { sequence, action } of await records()) if (sequence > after) found[action] = (found[action] ?? 0) + 1;
    return found;
  }

  test("AU-10: everything that was done is there once, and nothing else", async () => {
    const { client } = server;
    const after = (await records()).at(-1)?.sequence ?? 0;
    await client.call("trust", { project: server.project });
    await client.call("trust", { project: server.project });
    const { id } = await server.create({ name: "counted" });
    for (const line of ["true", "echo b > b.txt", "exit 3"]) await server.sh(id, line);
    await client.call("createSnapshot", { sandbox: "counted", name: "one" });
    await client.call("rollback", { sandbox: "counted", snapshot: "one" });
    await client.call("forkSandbox", { sandbox: "counted", count: 2, names: ["fork-1", "fork-2"] });
    await client.call("limitSandbox", { sandbox: "counted", cpus: 1 });
    await client.call("pauseSandbox", { sandbox: "counted" });
    await client.call("resumeSandbox", { sandbox: "counted" });
    await client.call("extendSandbox", { sandbox: "counted" });
    await client.call("changeNetwork", { sandbox: "counted", mode: "allow-list" });
    // Two requests that are let out and three that are not.
    const fetched = await server.sh(
      id,
      `for url in http://127.0.0.2:${port}/ http://127.0.0.2:${port}/ http://denied.test/ http://denied.test/ http://10.0.0.1/; do curl -s -m 5 -o /dev/null -w '%{http_code} ' $url; done`,
    );
    expect(fetched.stdout.trim()).toBe("200 200 403 403 403");
    await client.call("setSecret", { secret: "api-key", value: CANARY, hosts: ["api.example.com"] });
    await client.call("setSecret", { secret: "api-key", value: CANARY, hosts: ["api.example.com"] });
    await client.call("removeSecret", { secret: "api-key" });
    const question = `curl -s -d '{"kind":"command","target":"git push","reason":"done"}' http://localhost:4097/sandbox/self/approvals`;
    const approval = (JSON.parse((await server.sh(id, question)).stdout) as { id: string }).id;
    await client.call("answerApproval", { approval, answer: "deny", approver: server.approver() });
    const promotion = await client.call("promote", { sandbox: "counted" });
    expect(promotion.state).toBe("applied");
    await client.call("undoPromotion", { promotion: promotion.id });
    const put = viv(server, ["cp", join(server.project, "a.txt"), "counted:/tmp/in.txt"]);
    expect([put.code, put.err]).toEqual([0, ""]);
    expect(viv(server, ["cp", "counted:/tmp/in.txt", join(server.place, "out.txt")]).code).toBe(0);
    expect(viv(server, ["exec", "counted", "--", "true"]).code).toBe(0);
    await client.call("stopSandbox", { sandbox: "fork-1" });
    await client.call("removeSandbox", { sandbox: "fork-2" });
    await client.call("inspectSandbox", { sandbox: "counted" });
    await client.call("listSandboxes", {});
    await expect(client.call("removeSandbox", { sandbox: "never-was" })).rejects.toMatchObject({ code: "not_found" });
    const found = await eventually(
      () => counts(after),
      (all) => all["network.ended"] === 2,
    );
    expect(found).toEqual({
      "project.trust": 1,
      "sandbox.create": 1,
      exec: 3 + 1 + 1 + 1,
      "snapshot.create": 1,
      "sandbox.rollback": 1,
      "sandbox.fork": 2,
      "sandbox.limits": 1,
      "sandbox.pause": 1,
      "sandbox.resume": 1,
      "sandbox.extend": 1,
      "network.change": 1,
      "network.request": 5,
      "network.ended": 2,
      "secret.set": 1,
      "secret.replace": 1,
      "secret.remove": 1,
      approval: 1,
      "promotion.begin": 1,
      "promotion.end": 2,
      "promotion.undo": 1,
      "file.write": 1,
      "file.read": 1,
      "sandbox.stop": 1,
      "sandbox.remove": 1,
    });
    const all = (await records()).filter(({ sequence }) => sequence > after);
    const denied = all.filter(({ label }) => label === "DENIED");
    expect(denied.map(({ action }) => action).toSorted()).toEqual(["approval", ...Array.from({ length: 3 }, () => "network.request")]);
    for (const record of all) {
      expect(record.actor.name).not.toBe("");
      expect(record.target).not.toBe("");
    }
    const hashOf = (action: string): unknown =>
      (all.findLast((one) => one.action === action)?.arguments as { hash?: unknown } | undefined)?.hash;
    expect(hashOf("promotion.end")).toMatch(/^[0-9a-f]{40,}|^$/);
    expect(hashOf("approval")).toMatch(/^[0-9a-f]{64}$/);
    expect(hashOf("project.trust")).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(all)).not.toContain(CANARY);
    expect(await client.call("verifyAudit", {})).toMatchObject({ whole: true });
  }, 60_000);

  test("AU-08: secrets on command lines, in variables and in reports reach neither the trail nor the database", async () => {
    const { id } = await server.create({ name: "canaries" });
    const lines = [
      `curl -H 'Authorization: Bearer ${CANARY}' https://example.com`,
      `curl -u me:${CANARY} https://example.com`,
      `mysql --password=${CANARY}`,
      `API_TOKEN=${CANARY} npm publish`,
      `git clone https://me:${CANARY}@example.com/a.git`,
      `sshpass -p ${CANARY} ssh host`,
    ];
    for (const line of lines) await server.client.call("runCommand", { sandbox: id, command: ["true", line] });
    await server.client.call("runCommand", { sandbox: id, command: ["true"], env: { ANYTHING: CANARY } });
    for (const line of lines)
      await server.client.call("reportDecision", { sandbox: id, decision: { tool: "bash", args: { command: line, api_key: CANARY } } });
    const all = await records(id);
    expect(all.filter(({ action }) => action === "exec")).toHaveLength(lines.length + 1);
    expect(all.filter(({ action }) => action === "bash")).toHaveLength(lines.length);
    expect(JSON.stringify(all)).not.toContain(CANARY);
    expect(all.find(({ target }) => target.includes("mysql"))?.target).toContain("[redacted]");
    const reader = new DatabaseSync(join(server.paths.home, "vivarium.db"), { readOnly: true });
    const kept = reader.prepare("select count(*) as count from audit where body like ?").get(`%${CANARY}%`);
    const control = reader.prepare("select count(*) as count from audit where body like '%mysql%'").get();
    reader.close();
    expect([kept?.["count"], Number(control?.["count"]) > 0]).toEqual([0, true]);
  });

  test("AU-09: there is no way to take a record away or to begin anew", async () => {
    const about = [...Object.entries(ROUTES), ...Object.entries(STREAMS)].filter(([, { path }]) => /audit|decisions/.test(path));
    expect(about.map(([name, { method }]) => `${method} ${name}`).toSorted()).toEqual([
      "get listAudit",
      "get listDecisions",
      "get verifyAudit",
      "post reportDecision",
    ]);
    const before = await records();
    for (const path of ["/audit", "/audit/1", "/audit/verify", "/audit/rotate", "/sandboxes/counted/decisions", "/sandboxes/counted/audit"])
      for (const method of ["DELETE", "PUT", "PATCH"]) expect([path, method, await ask(server, method, path)]).toEqual([path, method, 404]);
    for (const path of ["/audit", "/audit/rotate", "/audit/trim"]) expect(await ask(server, "POST", path)).toBe(404);
    await server.client.call("prune", { all: false });
    const now = await records();
    expect(now.slice(0, before.length)).toEqual(before);
    expect(await ask(server, "GET", "/audit")).toBe(200);
  });

  test("AU-04: with the store locked, what opens something is refused and an agent's report does not wait", async () => {
    const { id } = await server.create({ name: "locked" });
    await server.client.call("changeNetwork", { sandbox: id, mode: "allow-list" });
    const curl = `curl -s -m 20 -o /dev/null -w '%{http_code} %{time_total}' http://127.0.0.2:${port}/`;
    const report = `curl -s -m 20 -o /dev/null -w '%{http_code} %{time_total}' -d '{"tool":"write"}' http://localhost:4097/sandbox/self/decisions`;
    expect((await server.sh(id, curl)).stdout).toMatch(/^200 /);
    expect((await server.sh(id, report)).stdout).toMatch(/^201 /);
    const background = await server.client.exec(id, { command: ["sh", "-c", `read go; ${report}; echo`], stdin: true });
    const blocker = new DatabaseSync(join(server.paths.home, "vivarium.db"));
    blocker.exec("begin immediate");
    let said = "";
    try {
      const opened = server.client.call("changeNetwork", { sandbox: id, mode: "public" });
      opened.catch(() => undefined);
      await background.write(Buffer.from("go\n"));
      for await (const chunk of background.output) {
        if ("data" in chunk) said += chunk.data.toString();
        if (said.includes("\n")) break;
      }
      await expect(opened).rejects.toMatchObject({ code: "audit_unavailable" });
    } finally {
      blocker.exec("rollback");
      blocker.close();
    }
    const [, status, seconds] = /(503) ([\d.]+)/.exec(said) ?? [];
    expect([status, Number(seconds) < 4]).toEqual(["503", true]);
    expect((await server.client.call("inspectNetwork", { sandbox: id })).rules.mode).toBe("allow-list");
    // What a person does meanwhile is done, and recorded when there is a way.
    expect((await server.sh(id, curl)).stdout).toMatch(/^200 /);
    await eventually(
      () => records(id),
      (all) => all.filter(({ action }) => action === "exec").length === 4,
    );
    expect(await server.client.call("verifyAudit", {})).toMatchObject({ whole: true });
  }, 60_000);

  test("AUD-3: reads as a story, with the label beside each action", async () => {
    const { id } = await server.create({ name: "story" });
    await server.client.call("reportDecision", { sandbox: id, decision: { tool: "write", args: "auth/login.ts" } });
    await server.client.call("changeNetwork", { sandbox: id, mode: "allow-list" });
    await server.sh(id, `curl -s http://127.0.0.2:${port}/; curl -s http://denied.test/`);
    const { out } = viv(server, ["audit", "story"]);
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    const find = (text: string): string | undefined => lines.find((line) => line.includes(text))?.slice(10);
    expect(find("sandbox.create")).toMatch(/^you +sandbox\.create: story \[RECORDED\]$/);
    expect(find("auth/login.ts")).toMatch(/^agent story +write: auth\/login\.ts \[AUTONOMOUS\]$/);
    expect(find(`127.0.0.2:${port} [`)).toMatch(/^agent story +network\.request: 127\.0\.0\.2:\d+ \[AUTONOMOUS \(whitelisted\)\] {2}rule /);
    expect(find("denied.test:80")).toMatch(/^agent story +network\.request: denied\.test:80 \[DENIED\] {2}/);
    expect(find("exec")).toMatch(/^you +exec in story: /);
    const one = viv(server, ["audit", "story", "--limit", "1", "--json"]);
    expect((JSON.parse(one.out) as { records: AuditRecord[] }).records).toHaveLength(1);
    expect(viv(server, ["audit", "story", "--since", "0"]).out).toBe("");
    expect(viv(server, ["audit", "--since", "10m", "story"]).out).toBe(out);
    expect(viv(server, ["audit", "--since", "yesterday"]).code).toBe(2);
  }, 60_000);

  test("AUD-3: goes on as it comes", async () => {
    const { id } = await server.create({ name: "followed" });
    const following = startViv(server, ["audit", "followed", "-f"]);
    let out = "";
    following.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    await eventually(
      () => out,
      (text) => text.includes("sandbox.create"),
    );
    await server.client.call("reportDecision", { sandbox: id, decision: { tool: "edit", args: "b.ts" } });
    await eventually(
      () => out,
      (text) => text.includes("edit: b.ts [AUTONOMOUS]"),
    );
    following.kill("SIGINT");
    const [code] = (await once(following, "exit")) as [number | null];
    expect(code).toBe(0);
  });

  test("AU-02: viv audit --verify names the first record that was changed, and a noted one that is not there any more", async () => {
    const whole = viv(server, ["audit", "--verify"]);
    expect(whole.code).toBe(0);
    const noted = /^Newest: (\d+:[0-9a-f]{64})$/m.exec(whole.out)?.[1] ?? "";
    expect(viv(server, ["audit", "--verify", "--noted", noted]).code).toBe(0);
    expect(viv(server, ["audit", "--verify", "--noted", noted.replace(/.$/, (last) => (last === "0" ? "1" : "0"))]).code).toBe(1);
    const database = new DatabaseSync(join(server.paths.home, "vivarium.db"));
    const { body } = database.prepare("select body from audit where sequence = 5").get() as { body: string };
    database.prepare("update audit set body = replace(body, 'owner', 'nobody') where sequence = 5").run();
    const broken = viv(server, ["audit", "--verify"]);
    expect([broken.code, broken.out.trim()]).toEqual([1, "Not whole from record 5 on. Record 5 was changed."]);
    database.prepare("update audit set body = ? where sequence = 5").run(body);
    database.close();
    expect(viv(server, ["audit", "--verify"]).code).toBe(0);
  }, 60_000);

  describe("killed while reports come in", () => {
    const REPORTERS = 48;
    let reports = 0;

    /** Reports until the server is gone; those it said yes to. */
    async function flood(sandbox: string): Promise<string[]> {
      const accepted: string[] = [];
      await Promise.all(
        Array.from({ length: REPORTERS }, async () => {
          for (;;) {
            const args = `report ${(reports += 1)}`;
            try {
              await server.client.call("reportDecision", { sandbox, decision: { tool: "flood", args } });
            } catch {
              return;
            }
            accepted.push(args);
          }
        }),
      );
      return accepted;
    }

    async function expectKept(sandbox: string, accepted: readonly string[]): Promise<void> {
      const kept = new Set((await records(sandbox)).filter(({ action }) => action === "flood").map(({ target }) => target));
      expect(accepted.filter((one) => !kept.has(one))).toEqual([]);
      expect(await server.client.call("verifyAudit", {})).toMatchObject({ whole: true });
    }

    test("AUD-2: at each step of writing, every report that was accepted is there and the chain is whole", async () => {
      const { id } = await server.create();
      const accepted: string[] = [];
      for (const point of ["audit.begin", "audit.append", "audit.committed", "audit.synced", "audit.anchor"]) {
        await expectKept(id, accepted);
        await server.arm(point, 25);
        const before = accepted.length;
        accepted.push(...(await flood(id)));
        await server.died();
        expect([point, accepted.length > before]).toEqual([point, true]);
        await server.up();
      }
      await expectKept(id, accepted);
      await server.client.call("removeSandbox", { sandbox: id });
    }, 90_000);

    test("AU-10: what a person did is there once, although the server was killed in the middle of it", async () => {
      const { id } = await server.create({ name: "halfway" });
      for (const [point, act] of [
        ["stop.completing", () => server.client.call("stopSandbox", { sandbox: "halfway" })],
        ["remove.begun", () => server.client.call("removeSandbox", { sandbox: "halfway" })],
      ] as const) {
        await server.dieAt(point, act);
      }
      expect((await records(id)).map(({ action }) => action)).toEqual(["sandbox.create", "sandbox.stop", "sandbox.remove"]);
      expect((await server.client.call("listSandboxes", {})).sandboxes.filter(({ name }) => name === "halfway")).toEqual([]);
    }, 60_000);

    test("AUD-2: at any moment, thousands of reports that were accepted are there and the chain is whole", async () => {
      const { id } = await server.create();
      const accepted: string[] = [];
      for (let kills = 0; kills < 2; kills += 1) {
        const before = reports;
        const flooding = flood(id);
        await eventually(
          () => reports,
          (now) => now > before + 1_500,
          30_000,
        );
        await server.kill();
        accepted.push(...(await flooding));
        await server.up();
        await expectKept(id, accepted);
      }
      expect(accepted.length).toBeGreaterThan(2_000);
      await server.client.call("removeSandbox", { sandbox: id });
    }, 120_000);
  });

  test("AU-06: what reports claim about who sent them changes nothing", async () => {
    const [one, two] = [await server.create({ name: "honest" }), await server.create({ name: "other" })];
    const claims = `-H 'X-Sandbox-Id: ${two.id}' -H 'X-Correlation-Id: 1' -H 'X-Request-Id: 1' -H 'Traceparent: 00-1-1-00'`;
    const body = JSON.stringify({
      tool: "forged",
      sequence: 1,
      at: "2000-01-01T00:00:00Z",
      actor: { kind: "person", name: "owner" },
      hash: "0",
    });
    await server.sh(one.id, `curl -s ${claims} -d '${body}' http://localhost:4097/sandbox/self/decisions`);
    const [found, ...more] = (await records()).filter(({ action }) => action === "forged");
    expect(more).toEqual([]);
    expect(found).toMatchObject({ actor: { kind: "agent", name: "honest" }, sandbox: one.id, label: "AUTONOMOUS" });
    expect(found?.at.startsWith("2000")).toBe(false);
  });
});

function ask(server: TestServer, method: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath: server.paths.socket, method, path, headers: { "content-type": "application/json" } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end(method === "POST" || method === "PUT" || method === "PATCH" ? "{}" : undefined);
  });
}
