/** DMN-1, DMN-2: a short night: many triggers of all kinds, some broken, one fix that makes things worse. Reality is as the report says. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signHook } from "../../src/work/automation/triggers/webhook.ts";
import { ACTING, AutomationLab, hashesOf } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const ROUNDS = 40;
const ACTS = { authority: "act-and-log" as const, checks: ["test -s base.txt"], batch: 300 };

describe("a night", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;

  function git(...args: string[]): void {
    execFileSync("git", ["-C", server.project, "-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { stdio: "ignore" });
  }

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: { "base.txt": "base\n", "in/a.txt": "0\n", "health.txt": "good\n" } });
    lab = new AutomationLab(server);
    git("checkout", "-q", "-b", "main");
    git("add", ".");
    git("commit", "-q", "-m", "one");
  });
  afterAll(async () => server?.remove());

  test("DMN-2: of 200 triggers leaves reality as the report says, by hashes", { timeout: 120_000 }, async () => {
    const log = join(server.place, "night.log");
    const outside = join(server.place, "outside");
    writeFileSync(log, "");
    writeFileSync(outside, "good\n");
    mkdirSync(join(server.project, "out"), { recursive: true });
    const began = new Date().toISOString();
    const before = hashesOf(server.project);
    const line = (name: string): string => `mkdir -p out; echo ${name} > out/${name}.txt`;
    await lab.add("files", { when: { on: "files", paths: ["in"] }, run: [line("files")], ...ACTS });
    await lab.add("log", { when: { on: "log", file: log, line: "*ERROR*" }, run: [line("log")], ...ACTS });
    await lab.add("commit", { when: { on: "commit", branch: "main" }, run: [line("commit")], ...ACTS });
    await lab.add("check", { when: { on: "check", command: "test ! -e in/broken", every: "1s" }, run: [line("check")], ...ACTS });
    await lab.add("clock", { when: { on: "schedule", cron: "* * * * * *" }, run: [line("clock")], ...ACTS });
    const { id, secret } = await lab.add("hook", { when: { on: "webhook" }, run: [line("hook")], ...ACTS });
    await lab.add("failing", { when: { on: "log", file: log, line: "*ERROR*" }, run: ["echo x > out/never.txt; exit 3"], ...ACTS });
    await lab.add("unproven", { when: { on: "log", file: log, line: "*ERROR*" }, run: ["rm base.txt"], ...ACTS });
    await lab.add("proposed", {
      when: { on: "log", file: log, line: "*ERROR 1" },
      run: [line("proposed")],
      ...ACTS,
      authority: "propose-and-wait",
    });
    await lab.add("worse", {
      when: { on: "log", file: log, line: "*ERROR 2" },
      run: ["echo bad > health.txt"],
      reality: [`cmp -s health.txt ${outside}`],
      ...ACTS,
    });
    await eventually(
      () => server.client.call("testAutomation", { automation: "commit" }),
      ({ seen }) => /is at \w+\.$/.test(seen),
    );
    const now = Math.floor(Date.now() / 1000);
    for (let round = 0; round < ROUNDS; round += 1) {
      appendFileSync(log, `ERROR ${round}\nfine\n`);
      writeFileSync(join(server.project, "in/a.txt"), `${round}\n`);
      const body = JSON.stringify({ round });
      expect(await call(server, id, signHook(secret ?? "", now, body), body)).toBe(200);
      expect(await call(server, id, signHook("wrong", now, body), body)).toBe(401);
    }
    writeFileSync(join(server.project, "in/broken"), "");
    git("commit", "-q", "--allow-empty", "-m", "two");
    const names = ["files", "log", "commit", "check", "clock", "hook", "failing", "unproven", "proposed", "worse"];
    for (const name of names)
      await eventually(
        () => lab.firings(name),
        (all) => all.length > 0,
        30_000,
      );
    await server.client.call("pauseAutomation", { automation: "clock" });
    const ended = await eventually(
      () => lab.firings(),
      (all) => all.every(({ endedAt, state, name }) => endedAt !== null || state === "waiting" || (name === "clock" && state === "seen")),
      60_000,
    );
    const report = await server.client.call("reportFirings", { since: began });
    expect(report.firings.map(({ id: firing, state }) => `${firing} ${state}`).toSorted()).toEqual(
      ended.map(({ id: firing, state }) => `${firing} ${state}`).toSorted(),
    );
    expect(report.triggers).toBeGreaterThanOrEqual(200);
    const of = (name: string): string[] => [...new Set(ended.filter((each) => each.name === name).map(({ state }) => state))];
    expect(of("failing")).toEqual(["failed"]);
    expect(of("unproven")).toEqual(["failed"]);
    expect(of("proposed")).toEqual(["waiting"]);
    expect(of("worse")).toEqual(["undone"]);
    // What the report calls promoted is in the project, and nothing else is.
    const promoted = new Set(report.firings.filter(({ state }) => state === "promoted").flatMap(({ files }) => files));
    const after = hashesOf(server.project);
    const changed = Object.keys(after).filter((path) => after[path] !== before[path] && !path.startsWith("in/"));
    expect(changed.toSorted()).toEqual([...promoted].toSorted());
    expect(Object.keys(before).every((path) => path in after)).toBe(true);
    expect(after["health.txt"]).toBe(before["health.txt"]);
    expect([...promoted]).toContain("out/hook.txt");
    expect(report.stopped.map(({ name }) => name)).toEqual(["worse"]);
  });
});

function call(server: TestServer, id: string, signature: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: "localhost", "viv-signature": signature };
    const asking = request({ socketPath: server.paths.socket, method: "POST", path: `/hooks/${id}`, headers }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode ?? 0));
    });
    asking.on("error", reject);
    asking.end(body);
  });
}
