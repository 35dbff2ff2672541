/** TASK-2, TASK-3, BOX-3: code that is given to be run, by plain HTTP and by the client. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { ended, http, run, sandboxesOf, schedule, statusOf } from "../support/jobs.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NEVER = "11111111-1111-4111-8111-111111111111";

describe("jobs", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    // Folders for temporary files are a sandbox's own, and the state folder holds the Node that runs TypeScript.
    server = await TestServer.start({
      parent: "/var/lib",
      before: ({ place }) => chmodSync(place, 0o755),
      files: { "hello.txt": "hello\n", "helper.py": "word = 'from the project'\n" },
    });
  });

  afterAll(async () => server?.remove());

  test("TASK-2: POST /schedule answers with a UUID v4 alone, GET /status with state, stdout and stderr alone", async () => {
    const scheduled = await http(server, "POST", "/schedule", { kind: "shell", code: "echo out; echo err >&2" });
    expect(scheduled).toEqual({ status: 200, body: { job_id: expect.stringMatching(UUID_V4) } });
    const { job_id } = scheduled.body as { job_id: string };
    await ended(server, job_id);
    expect(await http(server, "GET", `/status/${job_id}`)).toEqual({
      status: 200,
      body: { state: "succeeded", stdout: "out\n", stderr: "err\n" },
    });
  });

  test("TASK-3: what a job prints is read while it runs, and it is queued, running, then succeeded", async () => {
    const job = await schedule(server, { kind: "shell", code: "echo one; while ! test -e go; do sleep 0.05; done; echo two" });
    const { state } = await statusOf(server, job, ({ stdout }) => stdout === "one\n");
    expect(state).toBe("running");
    const { sandbox } = await server.client.call("inspectJob", { job });
    await server.sh(sandbox ?? "", "touch go");
    await ended(server, job);
    expect(await server.client.call("jobStatus", { job_id: job })).toEqual({ state: "succeeded", stdout: "one\ntwo\n", stderr: "" });
    const { events } = await server.client.call("listEvents", { limit: 1000 });
    const told = events.filter(({ data }) => data["job"] === job).map(({ type }) => type);
    expect(told).toEqual(["job.queued", "job.running", "job.succeeded"]);
    const { records } = await server.client.call("listAudit", {});
    expect(records.map(({ action, target }) => `${action} ${target}`)).toContain(`job.schedule ${job}`);
  });

  test("BOX-3, BOX-12: a shell job runs in an empty /workspace on a read-only system as user 1000, and leaves no sandbox", async () => {
    const { stdout, job } = await run(server, {
      kind: "shell",
      code: 'pwd; ls -A; id -u; touch /etc/x 2>/dev/null || echo closed; [[ $BASH_VERSION ]] && echo bash; exec 3</dev/stdin; read -r line || echo "no input"',
    });
    expect(stdout).toBe("/workspace\n1000\nclosed\nbash\nno input\n");
    expect(job).toMatchObject({ state: "succeeded", exitCode: 0, cause: "exit", reason: null, project: null });
    await eventually(
      () => sandboxesOf(server),
      (ids) => !ids.includes(job.sandbox ?? ""),
    );
  });

  describe("in Python", needs("python3"), () => {
    test("BOX-3: finds modules in its folder, prints at once, and fails with its traceback", async () => {
      const code = "import time\nopen('made.py', 'w').write('x = 3')\nimport made\nprint(made.x, 'ü')\nwhile True: time.sleep(1)";
      const job = await schedule(server, { kind: "python", code });
      await statusOf(server, job, ({ stdout }) => stdout === "3 ü\n");
      await server.client.call("cancelJob", { job });
      const failed = await run(server, { kind: "python", code: "print('before')\n1/0" });
      expect(failed).toMatchObject({ state: "failed", stdout: "before\n", job: { exitCode: 1 } });
      expect(failed.stderr).toContain("ZeroDivisionError");
    });

    test("runs in a clone of its project, and reality keeps its files", async () => {
      const { stdout, job } = await run(server, {
        kind: "python",
        project: server.project,
        code: "import os, helper\nprint(helper.word)\nopen('hello.txt', 'a').write('more')\nprint(os.getcwd())",
      });
      expect(stdout).toBe(`from the project\n${server.project}\n`);
      expect(job.project).toBe(server.project);
    });
  });

  test("BOX-3: TypeScript runs without set-up: types, enums, ES modules, top-level await, packages of its folder", async () => {
    const { stdout, stderr, state } = await run(server, {
      kind: "typescript",
      code: `import { mkdirSync, writeFileSync } from "node:fs";
enum Colour { Red = 4 }
interface Point { readonly x: number }
mkdirSync("node_modules/some-package", { recursive: true });
writeFileSync("node_modules/some-package/index.js", "module.exports = { name: 'some package' }");
writeFileSync("beside.ts", "export const y: number = 7");
const point: Point = { x: await Promise.resolve(5) };
const { y } = await import("./beside.ts");
const { default: some } = await import("some-package");
console.log(point.x, y, Colour.Red, some.name, typeof require("os").EOL);`,
    });
    expect({ stdout, stderr, state }).toEqual({ stdout: "5 7 4 some package string\n", stderr: "", state: "succeeded" });
  });

  describe("of the kind gui", needs("desktop"), () => {
    test("TASK-2: have a desktop that xdotool uses", async () => {
      const code = "xdotool getdisplaygeometry; xdotool mousemove 321 123; xdotool getmouselocation --shell | head -2";
      const { state, stdout, stderr } = await run(server, { kind: "gui", code });
      expect({ state, stdout, stderr }).toEqual({ state: "succeeded", stdout: "1280 800\nX=321\nY=123\n", stderr: "" });
    });
  });

  test("bad input is refused with a sentence: kind, code, ids, fields", async () => {
    const refused = async (input: object): Promise<string> => {
      const { status, body } = await http(server, "POST", "/schedule", input);
      const { error } = body as { error: { code: string; message: string } };
      return `${status} ${error.code} ${error.message}`;
    };
    expect(await refused({ kind: "ruby", code: "1" })).toMatch(/^400 invalid_input .*kind/);
    expect(await refused({ kind: "shell", code: "" })).toMatch(/^400 invalid_input .*empty/);
    expect(await refused({ kind: "shell", code: "echo \0" })).toMatch(/^400 invalid_input .*NUL/);
    expect(await refused({ kind: "shell", code: "echo \ud800" })).toMatch(/^400 invalid_input .*surrogate/);
    expect(await refused({ kind: "shell", code: "#".repeat(LIMITS.jobCodeBytes + 1) })).toMatch(/^400 invalid_input .*longer than/);
    expect(await refused({ kind: "shell", code: "#".repeat(10 * 1024 ** 2) })).toMatch(/^400 invalid_input .*larger than/);
    expect(await refused({ kind: "shell", code: "echo", colour: 1 })).toMatch(/^400 invalid_input Unknown field "colour"/);
    expect(await refused({ kind: "shell", code: "echo", timeout_seconds: 0 })).toMatch(/^400 invalid_input .*timeout_seconds/);
    expect(await refused({ kind: "shell", code: "echo", project: "/nowhere-at-all" })).toMatch(/^404 project_not_found/);
    expect((await http(server, "GET", "/status/42")).status).toBe(400);
    expect(await http(server, "GET", `/status/${NEVER}`)).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
    expect((await http(server, "GET", `/jobs/${NEVER}/output`)).status).toBe(404);
  });

  test("a job on a project whose config is not trusted is refused, and runs when it is", async () => {
    const project = join(server.place, "untrusted");
    mkdirSync(project);
    writeFileSync(join(project, "vivarium.json"), JSON.stringify({ env: { set: { WORD: "trusted" } } }));
    const input = { kind: "shell", code: "echo $WORD", project } as const;
    await expect(schedule(server, input)).rejects.toMatchObject({ code: "untrusted_config" });
    await server.client.call("trust", { project });
    expect((await run(server, input)).stdout).toBe("trusted\n");
  });

  test("a job that never ends fails at its time limit, one that is killed by its signal, and both say so", async () => {
    const slow = await run(server, { kind: "shell", code: "echo begun; sleep 600", timeout_seconds: 0.5 });
    expect(slow).toMatchObject({ state: "failed", stdout: "begun\n", job: { cause: "timeout", exitCode: 124 } });
    expect(slow.stderr).toMatch(/^viv: .*time limit.*\n$/);
    const killed = await run(server, { kind: "shell", code: "printf half >&2; kill -9 $$" });
    expect(killed).toMatchObject({ state: "failed", stderr: "half\nviv: The code was ended by SIGKILL.\n", job: { exitCode: 137 } });
  });

  test("background processes that a job leaves behind end with it", async () => {
    const { job, state } = await run(server, { kind: "shell", code: "for i in 1 2 3; do setsid sleep 600 & done; echo left" });
    expect(state).toBe("succeeded");
    await eventually(
      () => sandboxesOf(server),
      (ids) => !ids.includes(job.sandbox ?? ""),
    );
  });

  test("output beyond what is kept is cut at its beginning, and the first line says so", async () => {
    const mebibytes = rounds(32, 1024);
    const { stdout, job } = await run(server, { kind: "shell", code: `head -c ${mebibytes}M /dev/zero | tr '\\0' x; echo; echo last` });
    const dropped = mebibytes * 1024 ** 2 + 6 - LIMITS.jobOutputBytes;
    expect(stdout.slice(0, 200)).toMatch(new RegExp(`^\\[viv: ${dropped} bytes of output before this are not kept\\]\nxxx`));
    expect(stdout.endsWith("xxx\nlast\n")).toBe(true);
    expect(job.droppedBytes).toBe(dropped);
  });

  test("bytes that are no text come through the stream of output unchanged", async () => {
    const job = await schedule(server, { kind: "shell", code: "printf '\\377\\000\\200'" });
    const listen = async (): Promise<Buffer> => {
      const parts: Buffer[] = [];
      for await (const part of server.client.jobOutput(job, AbortSignal.timeout(30_000)))
        if ("stream" in part) parts.push(Buffer.from(part.data, "base64"));
      return Buffer.concat(parts);
    };
    expect([...(await listen())]).toEqual([0xff, 0, 0x80]);
    // From what is kept.
    expect([...(await listen())]).toEqual([0xff, 0, 0x80]);
  });

  test("an interpreter that the machine lacks is named with what installs it", async () => {
    const bare = join(server.place, "without-python");
    mkdirSync(bare);
    writeFileSync(join(bare, "vivarium.json"), JSON.stringify({ mask: ["/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"] }));
    const { state, stderr } = await run(server, { kind: "python", code: "print(1)", project: bare });
    expect({ state, stderr }).toEqual({
      state: "failed",
      stderr: "viv: Python is not installed in this machine: `apt install python3`.\n",
    });
  });

  test("the same key and request are the same job; the same key and another request a conflict", async () => {
    const input = { kind: "shell", code: "echo once", idempotency_key: "a-key" } as const;
    const [first, second] = await Promise.all([schedule(server, input), schedule(server, input)]);
    expect(second).toBe(first);
    const other = await http(server, "POST", "/schedule", { ...input, code: "echo twice" });
    expect(other).toMatchObject({ status: 409, body: { error: { code: "key_reused", message: expect.stringContaining(first) } } });
  });

  test("limits hold, and the sandbox is kept where that was asked for", async () => {
    const { job, stdout } = await run(server, {
      kind: "shell",
      code: "nproc; echo kept > file",
      limits: { cpus: 1, memory_bytes: 256 * 1024 ** 2 },
      keep_sandbox: true,
    });
    const box = await server.client.call("inspectSandbox", { sandbox: job.sandbox ?? "" });
    expect(box).toMatchObject({ limits: { cpus: 1, memoryBytes: 256 * 1024 ** 2 }, labels: { job: job.id } });
    expect(stdout).toBe("1\n");
    expect((await server.sh(box.id, "cat file")).stdout).toBe("kept\n");
    await server.client.call("removeSandbox", { sandbox: box.id });
    await expect(schedule(server, { kind: "shell", code: "echo", network: "everything" as "off" })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  test("10 clients at once get what their own job printed (1,000 jobs in a soak)", async () => {
    const each = rounds(1, 100);
    const client = async (number: number): Promise<string[]> => {
      const printed: string[] = [];
      for (let index = 0; index < each; index += 1) {
        const { state, stdout } = await run(server, { kind: "shell", code: `echo ${number} ${index}` });
        printed.push(`${state} ${stdout}`);
      }
      return printed;
    };
    const all = await Promise.all(Array.from({ length: 10 }, (_, number) => client(number)));
    expect(all).toEqual(
      Array.from({ length: 10 }, (_, number) => Array.from({ length: each }, (__, index) => `succeeded ${number} ${index}\n`)),
    );
  }, 600_000);
});

describe("a queue for one job at a time", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ config: { jobs: { parallel: 1 } } });
  });

  afterAll(async () => server?.remove());

  test("TASK-1: jobs wait for their turn, the highest priority first; a waiting and a running one can be cancelled", async () => {
    const running = await schedule(server, { kind: "shell", code: "echo on; sleep 600" });
    await statusOf(server, running, ({ stdout }) => stdout === "on\n");
    const low = await schedule(server, { kind: "shell", code: "echo low", priority: -1 });
    const high = await schedule(server, { kind: "shell", code: "echo high", priority: 5 });
    const unwanted = await schedule(server, { kind: "shell", code: "echo never" });
    const states = async (): Promise<string[]> => (await server.client.call("listJobs", {})).jobs.map(({ state }) => state);
    expect(await states()).toEqual(["queued", "queued", "queued", "running"]);
    const listening = ended(server, low);
    expect(await server.client.call("cancelJob", { job: unwanted })).toMatchObject({ state: "failed", startedAt: null, sandbox: null });
    expect(await server.client.call("jobStatus", { job_id: unwanted })).toEqual({
      state: "failed",
      stdout: "",
      stderr: "viv: The job was cancelled.\n",
    });
    expect(await server.client.call("cancelJob", { job: running })).toMatchObject({ state: "failed", cause: "cancelled" });
    const [first, second] = [await ended(server, high), await listening];
    expect(first.state + second.state).toBe("succeededsucceeded");
    expect((first.endedAt ?? "") <= (second.startedAt ?? "")).toBe(true);
    // One that has ended stays as it is.
    expect(await server.client.call("cancelJob", { job: high })).toMatchObject({ state: "succeeded" });
  });
});
