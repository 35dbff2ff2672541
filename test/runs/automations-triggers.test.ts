/** DMN-1: triggers of every kind, against real repositories, files and calls. */
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signHook } from "../../src/work/automation/triggers/webhook.ts";
import { ACTING, AutomationLab } from "../support/automations.ts";
import { eventually, freePort, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An automation that only tells needs no sandbox: what is tested is what fires. */
const TELL = { run: ["true"], authority: "alert-only" as const };

function git(folder: string, ...args: string[]): string {
  const who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false"];
  return execFileSync("git", ["-C", folder, ...who, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

describe("a trigger", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  let port: number;
  /** Connections are kept, as those of a caller that calls often. */
  const flood = new Agent({ keepAlive: true });

  beforeAll(async () => {
    port = await freePort();
    server = await TestServer.start({ config: ACTING, files: { "a.txt": "a\n" }, flags: ["--listen", String(port)] });
    lab = new AutomationLab(server);
    git(server.project, "checkout", "-q", "-b", "main");
    git(server.project, "add", ".");
    git(server.project, "commit", "-q", "-m", "one");
  });
  afterAll(async () => {
    flood.destroy();
    await server?.remove();
  });

  /** Over the port, without a token. */
  function call(path: string, signature: string | undefined, body: string): Promise<{ status: number; text: string }> {
    const headers = signature === undefined ? {} : { "viv-signature": signature };
    return new Promise((resolve, reject) => {
      const asking = request({ agent: flood, host: "127.0.0.1", port, method: "POST", path, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      asking.on("error", reject);
      asking.end(body);
    });
  }

  test("of a commit fires for another commit of a local branch, once, and for no other branch", async () => {
    await lab.add("local", { when: { on: "commit", branch: "main" }, ...TELL });
    await eventually(
      () => server.client.call("testAutomation", { automation: "local" }),
      ({ wouldFire }) => !wouldFire,
    );
    git(server.project, "branch", "other");
    git(server.project, "commit", "-q", "--allow-empty", "-m", "two");
    const commit = git(server.project, "rev-parse", "main");
    const [first] = await lab.ended("local", 1);
    expect(first?.seen[0]?.text).toContain(commit.slice(0, 12));
    git(server.project, "pack-refs", "--all");
    git(server.project, "commit", "-q", "--allow-empty", "-m", "three");
    expect((await lab.ended("local", 2)).length).toBe(2);
  });

  test("of a remote is asked with the user's git, and one that is gone is said and fires again when it is back", async () => {
    const remote = join(server.place, "remote.git");
    mkdirSync(remote);
    git(remote, "init", "-q", "--bare");
    git(server.project, "push", "-q", remote, "main");
    // Settings of the project that name programs are not read for it.
    const touched = join(server.place, "touched");
    git(server.project, "config", "core.sshCommand", `touch ${touched}; false`);
    git(server.project, "config", "remote.away.url", remote);
    git(server.project, "config", "remote.away.uploadpack", `touch ${touched}; git-upload-pack`);
    await lab.add("away", { when: { on: "commit", branch: "main", remote: "away", every: "1s" }, ...TELL });
    await eventually(
      () => server.client.call("testAutomation", { automation: "away" }),
      ({ seen }) => /is at \w+\.$/.test(seen),
      20_000,
    );
    renameSync(remote, `${remote}.gone`);
    expect(
      await eventually(
        () => lab.state("away"),
        ({ reason }) => reason !== null,
        20_000,
      ),
    ).toMatchObject({ state: "active" });
    renameSync(`${remote}.gone`, remote);
    git(server.project, "commit", "-q", "--allow-empty", "-m", "four");
    git(server.project, "push", "-q", remote, "main");
    const [firing] = await lab.ended("away", 1);
    expect(firing?.seen[0]?.text).toContain(git(server.project, "rev-parse", "main").slice(0, 12));
    expect(
      await eventually(
        () => lab.state("away"),
        ({ reason }) => reason === null,
      ),
    ).toMatchObject({ state: "active" });
    expect(() => execFileSync("test", ["-e", touched])).toThrow();
    await server.client.call("removeAutomation", { automation: "away" });
    git(server.project, "config", "--unset", "core.sshCommand");
  });

  test("of a check fires when it begins to fail, not while it goes on, and one that never ends is ended", async () => {
    await lab.add("check", { when: { on: "check", command: "test -e a.txt", every: "1s" }, ...TELL });
    const look = async (): Promise<string> => (await server.client.call("testAutomation", { automation: "check" })).seen;
    expect(await look()).toContain("passes");
    rmSync(join(server.project, "a.txt"));
    const [firing] = await lab.ended("check", 1);
    expect(firing?.seen[0]?.text).toContain("`test -e a.txt` ended with 1");
    expect(await look()).toContain("ended with 1");
    expect((await lab.firings("check")).length).toBe(1);
    await server.client.call("removeAutomation", { automation: "check" });
    writeFileSync(join(server.project, "a.txt"), "a\n");
    await lab.add("endless", { when: { on: "check", command: "sleep 1000", every: "1h" }, timeout: "1s", ...TELL });
    const [ended] = await lab.ended("endless", 1);
    expect(ended?.seen[0]?.text).toContain("timeout");
  });

  test("of a log fires for lines that match, across a rotation, and after a restart for what was written meanwhile", async () => {
    const log = join(server.place, "app.log");
    writeFileSync(log, "ERROR old\n");
    await lab.add("log", { when: { on: "log", file: log, line: "*ERROR*" }, ...TELL });
    appendFileSync(log, "fine\nERROR one\n");
    await lab.ended("log", 1);
    renameSync(log, `${log}.1`);
    writeFileSync(log, "ERROR two\n");
    await lab.ended("log", 2);
    await server.kill();
    appendFileSync(log, "ERROR three\n");
    await server.up();
    const all = await lab.ended("log", 3);
    expect(all.map(({ seen }) => seen.map(({ text }) => text).join())).toEqual(["ERROR three", "ERROR two", "ERROR one"]);
  });

  test("of a commit, of a remote and of a check fires once for what happened while no server was there", async () => {
    const remote = join(server.place, "down.git");
    mkdirSync(remote);
    git(remote, "init", "-q", "--bare");
    git(server.project, "push", "-q", remote, "main");
    await lab.add("down-commit", { when: { on: "commit", branch: "main" }, ...TELL });
    await lab.add("down-remote", { when: { on: "commit", branch: "main", remote }, ...TELL });
    await lab.add("down-check", { when: { on: "check", command: "test -e a.txt" }, ...TELL });
    const names = ["down-commit", "down-remote", "down-check"];
    for (const automation of names)
      await eventually(
        () => server.client.call("testAutomation", { automation }),
        ({ seen, wouldFire }) => !wouldFire && !seen.includes("not looked at before"),
        20_000,
      );
    await server.kill();
    git(server.project, "commit", "-q", "--allow-empty", "-m", "while no server was there");
    git(server.project, "push", "-q", remote, "main");
    rmSync(join(server.project, "a.txt"));
    await server.up();
    const commit = git(server.project, "rev-parse", "main").slice(0, 12);
    for (const name of names) expect(await lab.ended(name, 1)).toHaveLength(1);
    for (const name of names.slice(0, 2)) expect((await lab.firings(name))[0]?.seen[0]?.text).toContain(commit);
    await server.kill();
    await server.up();
    for (const automation of names)
      await eventually(
        () => server.client.call("testAutomation", { automation }),
        ({ wouldFire }) => !wouldFire,
        20_000,
      );
    for (const name of names) {
      expect(await lab.firings(name)).toHaveLength(1);
      await server.client.call("removeAutomation", { automation: name });
    }
    writeFileSync(join(server.project, "a.txt"), "a\n");
  });

  test("of a pattern that would keep a regular expression busy for years takes no time", async () => {
    const log = join(server.place, "hostile.log");
    writeFileSync(log, "");
    await lab.add("hostile", { when: { on: "log", file: log, line: `${"*a".repeat(200)}*!` }, ...TELL });
    appendFileSync(log, `${"a".repeat(16_000)}\n`.repeat(50));
    const began = performance.now();
    await server.client.call("status", {});
    expect(performance.now() - began).toBeLessThan(5_000);
    appendFileSync(log, `${"a".repeat(500)}!\n`);
    expect((await lab.ended("hostile", 1)).length).toBe(1);
  });

  test("DMN-1: of a webhook fires for a signed call without a token, and for no other", async () => {
    const { id, secret } = await lab.add("hook", { when: { on: "webhook" }, ...TELL });
    const now = Math.floor(Date.now() / 1000);
    const good = signHook(secret ?? "", now, "deployed");
    expect((await call(`/hooks/${id}`, undefined, "deployed")).status).toBe(401);
    expect((await call(`/hooks/${id}`, signHook("other", now, "deployed"), "deployed")).status).toBe(401);
    expect((await call(`/hooks/${id}`, signHook(secret ?? "", now - 900, "deployed"), "deployed")).status).toBe(401);
    expect((await call(`/hooks/${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`, good, "deployed")).status).toBe(401);
    expect((await call(`/hooks/${id}`, good, "deployed")).status).toBe(200);
    expect((await call(`/hooks/${id}`, good, "deployed")).status).toBe(409);
    expect((await call(`/hooks/${id}`, good, "x".repeat(70_000))).status).toBe(400);
    // The way in without a token leads nowhere else.
    for (const path of ["/hooks/../automations", "/hooks/", "/automations"]) expect((await call(path, good, "{}")).status).not.toBe(200);
    const [firing, ...rest] = await lab.ended("hook", 1);
    expect(firing?.seen).toMatchObject([{ text: "deployed" }]);
    expect(rest).toEqual([]);
    const renewed = await server.client.call("automationSecret", { automation: "hook", renew: true });
    expect(renewed.secret).not.toBe(secret);
    expect((await call(`/hooks/${id}`, signHook(secret ?? "", now, "again"), "again")).status).toBe(401);
    // The trigger of before is replaced a moment later.
    const signed = signHook(renewed.secret, now, "new");
    await eventually(
      () => call(`/hooks/${id}`, signed, "new"),
      ({ status }) => status === 200,
    );
  });

  test(
    "of 10,000 signed calls as fast as they come is bounded, and the firing counts those that were taken",
    { timeout: 150_000 },
    async () => {
      const { id, secret } = await lab.add("flood", { when: { on: "webhook" }, ...TELL, batch: 10_000 });
      const now = Math.floor(Date.now() / 1000);
      const bodies = Array.from({ length: 10_000 }, (_, index) => String(index));
      const signed = bodies.map((body) => signHook(secret ?? "", now, body));
      // More connections than a server has are not taken, and more calls than may wait get 429.
      flood.maxSockets = 1_100;
      const statuses = await Promise.all(
        bodies.map((body, index) =>
          call(`/hooks/${id}`, signed[index], body).then(
            ({ status }) => status,
            () => 0,
          ),
        ),
      );
      flood.maxSockets = Infinity;
      expect(new Set(statuses.filter((status) => ![0, 200, 429].includes(status)))).toEqual(new Set());
      const taken = statuses.filter((status) => status === 200).length;
      expect(taken).toBeGreaterThanOrEqual(1_000);
      const firings = await lab.ended("flood", 1);
      const counted = firings.reduce((sum, { count }) => sum + count, 0);
      // A call whose connection was cut may have been kept before its answer was sent.
      expect(counted).toBeGreaterThanOrEqual(taken);
      expect(counted).toBeLessThanOrEqual(taken + statuses.filter((status) => status === 0).length);
      expect(firings.reduce((sum, { seen }) => sum + seen.length, 0)).toBeLessThanOrEqual(20 * firings.length);
      expect(firings.length).toBeLessThan(20);
    },
  );

  test("of a schedule fires by the clock, and is caught up once after downtime", async () => {
    await expect(lab.add("wrong", { when: { on: "schedule", cron: "61 * * * *" }, ...TELL })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(lab.add("wrong", { when: { on: "schedule", cron: "0 3 * * *", timezone: "Mars/Base" }, ...TELL })).rejects.toMatchObject({
      code: "invalid_input",
    });
    const added = await lab.add("often", { when: { on: "schedule", cron: "*/2 * * * * *" }, ...TELL });
    expect(Date.parse(added.nextAt ?? "")).toBeGreaterThan(Date.now() - 5_000);
    await eventually(
      () => lab.firings("often"),
      (all) => all.length > 0,
      20_000,
    );
    await server.kill();
    const before = Date.now();
    await eventually(
      () => Date.now() - before,
      (waited) => waited > 7_000,
      20_000,
    );
    await server.up();
    const missed = await eventually(
      async () => (await lab.firings("often")).filter(({ seen }) => seen.some(({ text }) => text.includes("missed"))),
      (all) => all.length > 0,
      20_000,
    );
    expect(missed).toHaveLength(1);
    await server.client.call("removeAutomation", { automation: "often" });
  });
});
