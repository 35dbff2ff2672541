import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { viv } from "../support/viv.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { Terminal } from "../support/terminal.ts";

describe("vivarium.json", needs("root"), () => {
  let server: TestServer;
  /** Seen inside unless masked; the temporary folder of a sandbox is its own. */
  let outside: string;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "hello.txt": "hello\n", "secrets/key": "inside\n", "other/secrets/key": "elsewhere\n" } });
    outside = mkdtempSync("/opt/viv-test-");
    // What others may not read would be hidden anyway.
    chmodSync(outside, 0o755);
    mkdirSync(join(server.place, ".ssh"));
    writeFileSync(join(server.place, ".ssh/id_rsa"), "real key\n");
    writeFileSync(join(outside, "file"), "outside\n");
  });

  afterAll(async () => {
    await server.remove();
    rmSync(outside, { recursive: true });
  });

  afterEach(async () => {
    await server.client.call("prune", { all: true });
  });

  function configure(content: unknown): void {
    writeFileSync(join(server.project, "vivarium.json"), typeof content === "string" ? content : JSON.stringify(content));
  }

  const trust = () => server.client.call("trust", { project: server.project });

  test("limits what a sandbox gets, unless a create asks for something else", async () => {
    configure({ limits: { memory: "300m", cpus: 0.5, processes: 64, disk: "2g" }, idle: "5m" });
    const box = await server.create();
    expect(box).toMatchObject({
      idleMs: 300_000,
      untrusted: [],
      limits: { memoryBytes: 300 * 1024 ** 2, cpus: 0.5, processes: 64, diskBytes: 2 * 1024 ** 3 },
    });
    expect((await server.create({ limits: { processes: 100 }, idleMs: 1000_000 })).limits.processes).toBe(100);
  });

  test("hides paths in and outside of the project, exactly those", async () => {
    const line = `find secrets -type f; cat ${outside}/file 2>/dev/null; cat other/secrets/key`;
    configure({});
    expect((await server.sh((await server.create()).id, line)).stdout).toBe("secrets/key\noutside\nelsewhere\n");
    configure({ mask: ["secrets", outside] });
    const box = await server.create();
    expect((await server.sh(box.id, line)).stdout).toBe("elsewhere\n");
    expect((await server.client.call("inspectSandbox", { sandbox: box.id })).masked).toContain(outside);
  });

  test("shows what is hidden by default once it is trusted, copy-on-write", async () => {
    const key = join(server.place, ".ssh/id_rsa");
    configure({ expose: [join(server.place, ".ssh")] });
    const before = await server.create();
    expect(before.untrusted).toEqual(["expose"]);
    expect((await server.sh(before.id, `cat ${key}`)).end?.exitCode).not.toBe(0);
    expect(await trust()).toMatchObject({ trusted: true, widens: [{ key: "expose" }] });
    const box = await server.create();
    expect((await server.sh(box.id, `cat ${key}; echo changed > ${key}; cat ${key}`)).stdout).toBe("real key\nchanged\n");
    expect(readFileSync(key, "utf8")).toBe("real key\n");
  });

  test("passes, sets and drops variables of the environment", async () => {
    configure({ env: { pass: ["API_TOKEN"], set: { MODE: "test" }, drop: ["DROPPED"] } });
    const env = { PATH: process.env["PATH"] ?? "", API_TOKEN: "token", DB_PASSWORD: "password", DROPPED: "x", PLAIN: "plain" };
    const shown = async (box: Sandbox) => (await server.sh(box.id, "echo [$API_TOKEN] [$DB_PASSWORD] [$DROPPED] [$PLAIN] [$MODE]")).stdout;
    expect(await shown(await server.create({ env }))).toBe("[] [] [] [plain] []\n");
    await trust();
    expect(await shown(await server.create({ env }))).toBe("[token] [] [] [plain] [test]\n");
  });

  test("lets setuid programs work when it says sudo and is trusted, and not otherwise", async () => {
    configure({ sudo: true });
    const line = "cp /usr/bin/id /usr/local/bin/setuid-id; chmod 4755 /usr/local/bin/setuid-id";
    const effective = async (): Promise<string> => {
      const box = await server.create();
      await server.sh(box.id, line);
      return (await server.sh(box.id, "/usr/local/bin/setuid-id -u", { cwd: "/", user: "nobody" })).stdout;
    };
    expect(await effective()).toBe("65534\n");
    await trust();
    expect(await effective()).toBe("0\n");
  });

  test("only tightens until it is trusted; the command line says what waits, and trust is for that very content", async () => {
    configure({ mask: ["secrets"], sudo: true, limits: { cpus: 64, processes: 100 }, env: { set: { A: "b" } } });
    const created = viv(server, ["create", "--name", "waits"], { cwd: server.project });
    expect(created).toMatchObject({ code: 0, out: "waits\n" });
    expect(created.err).toMatch(/not trusted.*env\.set.*sudo.*limits.*viv trust/s);
    const detail = await server.client.call("inspectSandbox", { sandbox: "waits" });
    expect(detail.untrusted.toSorted()).toEqual(["env.set", "limits", "sudo"]);
    expect(detail.limits).toMatchObject({ cpus: 2, processes: 100 });
    expect(viv(server, ["inspect", "waits"]).out).toMatch(/untrusted.*sudo.*viv trust/);
    expect((await server.sh("waits", "find secrets -type f")).stdout).toBe("");
    expect(viv(server, ["trust", "--show"], { cwd: server.project }).out).toMatch(/sudo: true(.|\n)*not trusted yet/);
    expect(viv(server, ["trust"], { cwd: server.project })).toMatchObject({ code: 4, err: expect.stringContaining("viv trust --yes") });
    expect(viv(server, ["trust", "--yes"], { cwd: server.project })).toMatchObject({ code: 0, out: expect.stringContaining("Trusted.") });
    expect((await server.create()).limits.cpus).toBe(64);
    configure({ mask: ["secrets"], sudo: true, limits: { cpus: 64, processes: 100 }, env: { set: { A: "c" } } });
    expect((await server.create()).untrusted).toContain("sudo");
  });

  test("is trusted as it was shown: content that came while the question was open is not", async () => {
    configure({ env: { set: { SHOWN: "1" } } });
    const first = new Terminal(server, ["trust"], server.project);
    await first.until("Trust this content?");
    configure({ sudo: true });
    await first.until("has changed since", "y\n");
    expect(await first.end()).not.toBe(0);
    expect((await server.client.call("trust", { project: server.project, dryRun: true })).trusted).toBe(false);
    const { hash } = await server.client.call("trust", { project: server.project, dryRun: true });
    configure({ env: { set: { SHOWN: "1" } } });
    await expect(server.client.call("trust", { project: server.project, hash: hash ?? "" })).rejects.toMatchObject({
      code: "untrusted_config",
    });
    const second = new Terminal(server, ["trust"], server.project);
    await second.until("Trust this content?");
    await second.until("Trusted.", "y\n");
    expect([await second.end(), (await server.create()).untrusted]).toEqual([0, []]);
  });

  test("inside a sandbox counts for nothing, neither there nor in its forks", async () => {
    configure({ mask: ["secrets"] });
    const box = await server.create();
    await server.sh(box.id, `echo '{"sudo":true,"services":{"x":{"command":"touch /tmp/started"}}}' > vivarium.json`);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    const fork = sandboxes[0]?.id ?? "";
    expect((await server.sh(fork, "cat vivarium.json; ls /tmp/started 2>&1; find secrets -type f")).stdout).toMatch(
      /sudo(.|\n)*No such file or directory\n$/,
    );
    expect((await server.create()).untrusted).toEqual([]);
  });

  describe("that has narrowed since", () => {
    const wide = (): object => ({
      expose: [join(server.place, ".ssh")],
      sudo: true,
      env: { pass: ["MY_TOKEN"], set: { SET: "set" } },
      network: { mode: "public", allow: [{ host: "db.example.com", ports: [5432], tcp: true }] },
    });
    const line = (): string =>
      `cat ${server.place}/.ssh/id_rsa ${outside}/file 2>/dev/null; grep NoNewPrivs /proc/self/status | tr -d '\\n'; echo; echo $MY_TOKEN $SET`;
    const seen = async (sandbox: string): Promise<string[]> => {
      const { stdout } = await server.sh(sandbox, line());
      const { rules } = await server.client.call("inspectNetwork", { sandbox });
      return [...stdout.trim().split(/\s+/), ...rules.allow.map(({ host }) => host)];
    };
    const fork = async (sandbox: string): Promise<string> => (await server.client.call("forkSandbox", { sandbox })).sandboxes[0]?.id ?? "";
    const ALL = ["real", "key", "outside", "NoNewPrivs:", "0", "value", "set", "db.example.com", "mine.example.com"];
    let box: string;
    let snapshot: string;

    beforeEach(async () => {
      configure(wide());
      await trust();
      box = (await server.create({ env: { MY_TOKEN: "value", PATH: "/usr/bin:/bin" } })).id;
      await server.client.call("changeNetwork", { sandbox: box, allow: ["mine.example.com"] });
      snapshot = (await server.client.call("createSnapshot", { sandbox: box })).id;
    });

    test("leaves a fork nothing that a new sandbox would not have, but what a person chose for it", async () => {
      expect(await seen(await fork(box))).toEqual(ALL);
      configure({ mask: [outside] });
      expect(await seen(await fork(box))).toEqual(["NoNewPrivs:", "1", "mine.example.com"]);
      // Not trusted: what it says is another content than the one that was.
      configure({ ...wide(), idle: "5m" });
      const untrusted = await fork(box);
      expect(await seen(untrusted)).toEqual(["outside", "NoNewPrivs:", "1", "mine.example.com"]);
      configure("{");
      expect(await seen(await fork(box))).toEqual(["outside", "NoNewPrivs:", "1", "mine.example.com"]);
      configure(wide());
      expect(await seen(await fork(box))).toEqual(ALL);
      expect(await seen(await fork(untrusted))).toEqual(["outside", "NoNewPrivs:", "1", "mine.example.com"]);
    });

    test("holds after a rollback and a start, too", async () => {
      configure({ mask: [outside] });
      expect(await seen(box)).toEqual(ALL);
      await server.client.call("rollback", { sandbox: box, snapshot });
      expect(await seen(box)).toEqual(["NoNewPrivs:", "1", "mine.example.com"]);
      configure({});
      await server.client.call("stopSandbox", { sandbox: box });
      await server.client.call("startSandbox", { sandbox: box });
      expect(await seen(box)).toEqual(["NoNewPrivs:", "1", "mine.example.com"]);
    });

    test("makes no fork of a sandbox that holds what is masked in the project by now", async () => {
      configure({ mask: ["never/there", "other"] });
      await expect(fork(box)).rejects.toMatchObject({
        code: "unsupported",
        message: expect.stringContaining("holds other of the project"),
      });
      configure({ mask: ["never/there"] });
      expect(await seen(await fork(box))).toContain("outside");
    });
  });

  test("may have comments and trailing commas, and what is wrong is named with file and line", async () => {
    configure(`{\n  // a comment\n  "limits": { "cpus": 1, },\n}\n`);
    expect((await server.create()).limits.cpus).toBe(1);
    const file = join(server.project, "vivarium.json");
    const wrong = [
      [`{\n  "limits": {\n    "cpus": "many"\n  }\n}`, `${file}:3: limits.cpus`],
      [`{\n\n  "surprise": 1\n}`, `${file}:3: surprise: there is no such key; there are $schema, limits, `],
      [`{\n  "mask": ["a"\n`, `${file}:3: `],
      [`[]`, `${file}:1: `],
    ] as const;
    for (const [content, message] of wrong) {
      configure(content);
      await expect(server.create()).rejects.toMatchObject({ code: "config_invalid", message: expect.stringContaining(message) });
    }
    expect(viv(server, ["create"], { cwd: server.project })).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("vivarium.json:1"),
    });
    expect(existsSync(join(server.paths.home, "pool/volumes"))).toBe(true);
    expect((await server.client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
    configure({});
  });
});
