/** DMN-1, DMN-2: from an empty config to an upgrade that was tested and proposed overnight, and that a person approves in the morning. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AutomationLab } from "../support/automations.ts";
import { CHECKOUT } from "../support/compiled.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv, type Answer } from "../support/viv.ts";

const INSTALL = "npm install --offline --no-audit --no-fund";

describe("an upgrade overnight", needs("root", "open-checkout"), () => {
  let server: TestServer;
  let clock: JumpingClock;
  let project: string;
  const env = { PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` };
  const sh = (line: string): string =>
    execFileSync("sh", ["-c", line], { cwd: project, env: { ...process.env, ...env }, encoding: "utf8" });
  const call = (...words: string[]): Answer =>
    viv(server, words, { cwd: project, env: { ...env, VIV_APPROVER_TOKEN: server.approver(), ...clock.env } });

  beforeAll(async () => {
    clock = new JumpingClock();
    clock.set(22, 0);
    server = await TestServer.start({ env: clock.env });
    project = join(server.place, "report");
    mkdirSync(project);
    cpSync(join(CHECKOUT, "examples/dependency-upgrade/report"), project, { recursive: true });
    sh(`git init -q && ${INSTALL} --loglevel=error`);
    sh("git add . && git -c user.name=t -c user.email=t@example.com commit -q -m 'A report'");
  });
  afterAll(async () => {
    await server?.remove();
    clock?.remove();
  });

  test(
    "is tried at three, waits in the morning's report, and is in the project once a person approves it",
    { timeout: 120_000 },
    async () => {
      const lines = ["1.1.0", "2.0.0"].flatMap((version) => ["--run", `${INSTALL} ./vendor/plain-table-${version}.tgz`]);
      const checks = ["--check", "npm test", "--setup", "npm ci --offline --no-audit --no-fund"];
      expect(call("automation", "add", "upgrade", "--cron", "0 3 * * *", ...lines, ...checks)).toMatchObject({
        code: 0,
        out: expect.stringContaining("03:00 every day; it may propose-and-wait."),
      });
      const lab = new AutomationLab(server);
      clock.set(2, 59, 1);
      expect(await lab.firings("upgrade")).toEqual([]);
      clock.set(3, 1);
      const [firing] = await lab.ended("upgrade", 1, 90_000);
      expect(firing).toMatchObject({ state: "waiting", kind: "schedule", seen: [{ text: expect.stringContaining("It was due at") }] });
      expect(readFileSync(join(project, "package.json"), "utf8")).toContain("plain-table-1.0.0");
      clock.set(8, 0);
      const report = call("report").out;
      expect(report).toContain("Waits for you (1)");
      const [, promotion = ""] = /viv approve (\S+)/.exec(report) ?? [];
      expect(call("approve", promotion).code).toBe(0);
      expect(readFileSync(join(project, "package.json"), "utf8")).toContain("plain-table-1.1.0");
      sh("npm ci --offline --no-audit --no-fund --loglevel=error && npm test");
      expect(call("report").out).toContain("Promoted (1)");
    },
  );
});
