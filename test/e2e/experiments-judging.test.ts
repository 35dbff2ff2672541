/** What an approach may try so that it looks better than it is, and what its checks see of that. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attempt, Lab } from "../support/experiments.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = {
  value: "wrong\n",
  "test/check.sh": "grep -q right value\n",
  "test/value.test.mjs":
    'import test from "node:test"; import { readFileSync } from "node:fs"; import assert from "node:assert";\n' +
    'test("reads", () => assert.ok(readFileSync("value", "utf8")));\n' +
    'test("is right", () => assert.equal(readFileSync("value", "utf8"), "right\\n"));\n',
  ".gitignore": "node_modules/\nbuild/\n",
  "package.json": "{}\n",
  "package-lock.json": "{}\n",
};
const CHECK = "sh test/check.sh";

describe("judging an attempt", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start({
      files: FILES,
      config: { spares: false, expose: [dirname(process.execPath)] },
      env: { PATH: process.env["PATH"] ?? "" },
    });
    lab = new Lab(server);
  });

  afterAll(async () => server.remove());

  test("EXP-2: an approach that edits, deletes or replaces the test is flagged, and judged with the original", async () => {
    const ended = await lab.run(
      [
        "echo true > test/check.sh",
        "rm -r test; mkdir -p elsewhere; echo true > elsewhere/check.sh; ln -s elsewhere test",
        "echo true > test/check.sh; echo right > value",
        "echo right > value; seq 9 > notes",
      ],
      { checks: [CHECK] },
    );
    expect(attempt(ended, "a")).toMatchObject({ protectedChanged: ["test/check.sh"], checked: { passed: false } });
    expect(attempt(ended, "a").flags).toContain("It changes nothing but protected files.");
    expect(attempt(ended, "b").protectedChanged).toEqual(["test/check.sh", "test/value.test.mjs"]);
    expect(attempt(ended, "b").checked?.passed).toBe(false);
    // The one that leaves the tests alone comes first, although its diff is larger.
    expect(attempt(ended, "c")).toMatchObject({ protectedChanged: ["test/check.sh"], checked: { passed: true }, rank: 2 });
    expect(ended).toMatchObject({ winner: 4 });
    expect(ended.reason).toContain("leaves protected files untouched");
    // In its own sandbox the attempt has what it wrote.
    expect((await server.sh(attempt(ended, "a").sandbox ?? "", "cat test/check.sh")).stdout).toBe("true\n");
    await lab.remove(ended.id);
  });

  test("EXP-2: with nothing protected the same edit passes", async () => {
    const ended = await lab.run(["echo true > test/check.sh"], { checks: [CHECK], protect: [] });
    expect(ended).toMatchObject({ winner: 1 });
    expect(attempt(ended, "a")).toMatchObject({ protectedChanged: [], checked: { passed: true } });
    await lab.remove(ended.id);
  });

  test("EXP-2: scripts and test runners of package.json are the original ones, the rest of it is the attempt's", async () => {
    const line = (script: string): string => `sh -c "$(sed -n 's/.*"test": "\\([^"]*\\)".*/\\1/p' ${script})"`;
    const put = (json: string): string => `echo '${json}' > package.json`;
    writeFileSync(join(server.project, "package.json"), '{"name":"p",\n"scripts":{\n"test": "grep -q right value"\n}}\n');
    const ended = await lab.run(
      [
        put('{"name":"p","scripts":{"test": "true"}}'),
        `${put('{"name":"p","version":"2.0.0","scripts":{"test": "true"}}')}; echo right > value`,
        `${put('{"name":"p","version":"3.0.0",\n"scripts":{\n"test": "grep -q right value"\n}}')}; echo right > value; seq 30 > notes`,
      ],
      { checks: [line("package.json")] },
    );
    expect(attempt(ended, "a")).toMatchObject({ protectedChanged: ["package.json"], checked: { passed: false } });
    expect(attempt(ended, "a").flags).toContain("It changes nothing but protected files.");
    expect(attempt(ended, "b")).toMatchObject({ protectedChanged: ["package.json"], checked: { passed: true } });
    expect(attempt(ended, "c")).toMatchObject({ protectedChanged: [] });
    expect(ended.winner).toBe(3);
    writeFileSync(join(server.project, "package.json"), "{}\n");
    await lab.remove(ended.id);
  });

  test("EXP-2: files named as protected are, with what is added to them", async () => {
    const ended = await lab.run(["echo right > value; echo x > conf-local; mkdir -p lib/deep; echo y > lib/deep/z"], {
      checks: ["test ! -e conf-local", "test ! -e lib", CHECK],
      protect: ["conf-*", "lib/"],
    });
    expect(attempt(ended, "a")).toMatchObject({ protectedChanged: ["conf-local", "lib/deep/z"], checked: { passed: true } });
    expect(ended.winner).toBe(1);
    await lab.remove(ended.id);
  });

  test("EXP-2: processes and environment that an approach leaves behind don't reach the checks", async () => {
    const ended = await lab.run(
      [
        // A process that makes the check pass whenever it looks.
        "(while :; do echo right > value; sleep 0.01; done) >/dev/null 2>&1 & sleep 0.2; echo wrong > value; kill -STOP $!; echo wrong > value; (sleep 0.3; kill -CONT $!) >/dev/null 2>&1 & true",
      ],
      { checks: [`sleep 1; ${CHECK}`] },
    );
    expect(attempt(ended, "a").checked).toMatchObject({ passed: false });
    // The attempt's own sandbox goes on, and there it is right: the process is real.
    const own = attempt(ended, "a").sandbox ?? "";
    await eventually(
      async () => (await server.sh(own, "cat value")).stdout,
      (text) => text === "right\n",
    );
    await lab.remove(ended.id);
  });

  test("EXP-2: a check that writes into its own sandbox leaks into no attempt, no other check and not into reality", async () => {
    const ended = await lab.run(["echo right > value", "echo right > value; echo more > notes"], {
      checks: [`${CHECK} && test ! -e leak && echo leaked > leak && echo wrong > value`, "test -e leak"],
      repeat: 2,
    });
    expect(ended).toMatchObject({ winner: 1 });
    expect(attempt(ended, "a")).toMatchObject({ diff: { files: 1 }, checked: { passed: true, checks: [{ runs: 2 }, { runs: 2 }] } });
    expect((await server.sh(attempt(ended, "a").sandbox ?? "", "cat value; test ! -e leak")).stdout).toBe("right\n");
    expect(existsSync(join(server.project, "leak"))).toBe(false);
    await lab.remove(ended.id);
  });

  test("EXP-2: what passes only with side changes does not win, and says what it needs", async () => {
    const ended = await lab.run(
      [
        "echo x > notes; mkdir -p build; echo right > build/out",
        "echo '{\"lockfileVersion\": 3}' > package-lock.json; mkdir -p node_modules/dep; echo right > node_modules/dep/index.js",
        "echo y > notes; echo right > /usr/local/answer",
      ],
      { checks: ["grep -q right build/out node_modules/dep/index.js /usr/local/answer"] },
    );
    const only = await lab.run(["mkdir -p build; echo right > build/out"], { checks: ["grep -q right build/out"] });
    expect(ended.winner).toBeNull();
    expect(attempt(only, "a")).toMatchObject({ diff: { files: 0 }, sideChanges: ["build/ (1 file)"], verified: null });
    expect(only.reason).toContain("it changes nothing that can be promoted");
    const included = await lab.run(["mkdir -p build; echo right > build/out"], { checks: ["grep -q right build/out"], include: ["build"] });
    expect(included).toMatchObject({ winner: 1 });
    for (const { id } of [ended, only, included]) await lab.remove(id);
  });

  test("EXP-2: an ignore rule that an attempt makes keeps what it installed out of its change, and hides no protected file", async () => {
    const fix = "echo right > value; printf 'vendored/\\nlib/\\n.npmrc\\n' >> .gitignore";
    const ended = await lab.run([`${fix}; mkdir -p vendored lib; seq 500 > vendored/much; echo own > lib/own; echo a=b > .npmrc`], {
      checks: [CHECK],
      protect: ["lib"],
    });
    expect(ended).toMatchObject({ winner: 1 });
    expect(attempt(ended, "a")).toMatchObject({
      diff: { files: 4, added: 6, removed: 1 },
      sideChanges: ["vendored/ (1 file)"],
      protectedChanged: ["lib/own"],
      flags: ["It changes how commands are run: .npmrc."],
    });
    const plan = await server.client.call("planPromotion", { experiment: ended.id });
    expect(plan.changes.map(({ path }) => path)).toEqual([".gitignore", ".npmrc", "value"]);
    await lab.remove(ended.id);
  });

  test("EXP-2: a lock file that changed needs an install, which the setup can be", async () => {
    const install = "test -e package-lock.json && mkdir -p node_modules/dep && cp package-lock.json node_modules/dep/version";
    const lines = [`echo '{"lockfileVersion": 3}' > package-lock.json; ${install}`];
    const check = "grep -q 3 node_modules/dep/version";
    const without = await lab.run(lines, { checks: [check] });
    expect(without).toMatchObject({ winner: null });
    expect(attempt(without, "a")).toMatchObject({ checked: { passed: true }, verified: { passed: false }, needs: ["npm ci"] });
    expect(without.reason).toContain("its change alone does not pass");
    expect(without.reason).toContain("it needs npm ci");
    const system = await lab.run(["echo z > notes; echo right > /usr/local/answer"], { checks: ["grep -q right /usr/local/answer"] });
    expect(attempt(system, "a")).toMatchObject({ verified: { passed: false }, needs: ["/usr/local/ (1 file)"] });
    const withSetup = await lab.run(lines, { checks: [check], setup: install });
    expect(withSetup).toMatchObject({ winner: 1, baseline: { passed: false } });
    for (const { id } of [without, system, withSetup]) await lab.remove(id);
  });

  test("EXP-2: failing tests are counted, and fewer tests than before are flagged", async () => {
    const check = `${process.execPath} --test test/value.test.mjs`;
    const skipping = 'sed -i \'s/^test("is right"/test.skip("is right"/\' test/value.test.mjs';
    const ended = await lab.run(["echo right > value", skipping], { checks: [check], protect: [] });
    expect(ended.baseline?.checks[0]?.tests).toEqual({ format: "node", passed: 1, failed: 1, skipped: 0 });
    expect(attempt(ended, "a").checked?.checks[0]?.tests).toEqual({ format: "node", passed: 2, failed: 0, skipped: 0 });
    expect(attempt(ended, "a").fewerTests).toBeNull();
    expect(attempt(ended, "b").fewerTests).toBe(`Only 1 of the 2 tests of \`${check}\` ran.`);
    await lab.remove(ended.id);
  });

  test("EXP-2: a check that passes only at times is found by repeating, and does not count as passed", async () => {
    // Every pass has a state of its own: nothing but time differs.
    const ended = await lab.run(["echo right > value"], { checks: ["[ $(( $(date +%s%N) / 1000 % 2 )) = 0 ]"], repeat: 12 });
    expect(attempt(ended, "a").checked?.checks[0]).toMatchObject({ passed: false, flaky: true, runs: 12, exitCode: 1 });
    expect(attempt(ended, "a").flags).toContain("A check passes only at times.");
    expect(ended.winner).toBeNull();
    await lab.remove(ended.id);
  });

  test("LIM-3, EXP-2: commands and checks have a time limit, and say so", async () => {
    const ended = await lab.run(["echo right > value; sleep 60", "echo right > value"], {
      checks: ["sleep 60"],
      timeoutMs: 2_000,
      checkTimeoutMs: 300,
    });
    expect(attempt(ended, "a")).toMatchObject({ state: "failed", exitCode: 124, reason: "The command reached its time limit." });
    expect(attempt(ended, "b").checked?.checks[0]).toMatchObject({ passed: false, exitCode: 124, cause: "timeout" });
    await lab.remove(ended.id);
  });

  test("EXP-2: hostile output is bounded, and is data", async () => {
    const ended = await lab.run(["yes '<testsuite><testcase>' | head -c 30000000; printf '\\033[2J\\000'"], {
      checks: ["head -c 3000000 /dev/zero"],
    });
    const { output, checked } = attempt(ended, "a");
    expect(output.length).toBeLessThanOrEqual(16 * 1024);
    expect(checked?.checks[0]?.output.length).toBeLessThanOrEqual(32 * 1024);
    await lab.remove(ended.id);
  });

  test("CLONE-7: a folder shared live that moves in reality makes an attempt run again", async () => {
    const modules = join(server.project, "node_modules");
    for (let index = 0; index < 2_100; index += 1) {
      mkdirSync(join(modules, `package-${index}`), { recursive: true });
      writeFileSync(join(modules, `package-${index}`, "index.js"), "");
    }
    chmodSync(modules, 0o755);
    const deep = join(modules, "package-0", "lib", "deep", "down.js");
    mkdirSync(dirname(deep), { recursive: true });
    writeFileSync(deep, "before\n");
    const started = await lab.start(["cat node_modules/package-0/lib/deep/down.js; sleep 1; ls node_modules | wc -l", "sleep 0.1"]);
    await lab.until(started.id, "b", "done");
    await lab.until(started.id, "a", "running");
    writeFileSync(deep, "after\n");
    const ended = await lab.end(started.id);
    expect(attempt(ended, "a")).toMatchObject({ state: "done", reruns: 1, output: "after\n2100\n", flags: [] });
    // What had ended before it moved is not run again.
    expect(attempt(ended, "b")).toMatchObject({ state: "done", reruns: 0 });
    await lab.remove(ended.id);
  });
});
