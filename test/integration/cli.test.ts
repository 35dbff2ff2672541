/** The command line against the real API with a scripted engine behind it, and how it starts a server. */
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { VivError } from "../../src/base/schema/errors.ts";
import { dialHost, hostCommand, leadHost, sandbox, scriptedEngine } from "../support/cli-engine.ts";
import { serve, type ScriptedServer } from "../support/cli-server.ts";
import { COMMAND_LINE, COMPILED } from "../support/compiled.ts";
import { echoServer } from "../support/scripted-engine.ts";

const root = join(import.meta.dirname, "..", "..");
const start = `import module from "node:module"; module.enableCompileCache(${JSON.stringify(COMPILED)}); const { main } = await import(process.argv[1]); process.exitCode = await main(process.argv.slice(2));`;

function program(words: readonly string[], main = COMMAND_LINE): string[] {
  return ["--input-type=module", "-e", start, "--", main, ...words];
}

interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function result(child: ChildProcessWithoutNullStreams): Promise<Result> {
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number | null, out, err };
}

let server: ScriptedServer;
const box = sandbox("try", tmpdir());

function find(name: string): typeof box {
  if (name === box.name || name === box.id) return box;
  throw new VivError("not_found", `There is no sandbox ${name}.`);
}

beforeAll(async () => {
  const engine = scriptedEngine(
    {
      listSandboxes: async () => ({ sandboxes: [box] }),
      findSandbox: async ({ sandbox: name }) => find(name),
      inspectSandbox: async ({ sandbox: name }) => find(name),
      createSandbox: async () => box,
      listEvents: async () => ({ events: [], oldest: 1, newest: 1 }),
    },
    {
      events: async (_after, { signal }) =>
        (async function* () {
          yield* [];
          await once(signal, "abort");
        })(),
      exec: async (name, { command, cwd, env }) =>
        hostCommand(find(name), command, { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) }),
      dial: async (_name, port) => dialHost(port),
      lead: (_name, port, local) => leadHost(port, local),
    },
  );
  server = await serve(engine);
});
afterAll(() => server.close());

function viv(words: readonly string[], cwd = tmpdir()): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, program(words), { cwd, env: { ...process.env, VIV_HOME: server.home, VIV_NO_START: "1" } });
}

/** Runs to the end with nothing on stdin. */
async function run(...words: string[]): Promise<Result> {
  const child = viv(words);
  child.stdin.end();
  return result(child);
}

describe("viv exec", () => {
  test("passes input, both outputs and the exit code through", async () => {
    const child = viv(["exec", "try", "--", "sh", "-c", "cat; echo warning >&2; exit 7"]);
    child.stdin.end("in\0put\n");
    expect(await result(child)).toEqual({ code: 7, out: "in\0put\n", err: "warning\n" });
  });

  test("passes many bytes of any value through, unchanged", async () => {
    const data = Buffer.alloc(20 * 1024 ** 2);
    for (let index = 0; index < data.length; index += 1) data[index] = (index * 31 + (index >> 8)) & 0xff;
    const child = viv(["exec", "try", "--", "cat"]);
    child.stdin.end(data);
    const hash = createHash("sha256");
    for await (const chunk of child.stdout) hash.update(chunk as Buffer);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(data).digest("hex"));
  });

  test("ends with the command although input goes on", async () => {
    const child = viv(["exec", "try", "--", "sh", "-c", "exit 4"]);
    child.stdin.on("error", () => undefined);
    const feed = setInterval(() => child.stdin.write(Buffer.alloc(65_536)), 1);
    const { code } = await result(child);
    clearInterval(feed);
    expect(code).toBe(4);
  });

  test("gives 127 for a command that is not there, 125 for a sandbox that is not, 2 for wrong usage", async () => {
    expect(await run("exec", "try", "--", "no-such-program")).toMatchObject({ code: 127, out: "" });
    expect(await run("exec", "nope", "--", "ls")).toMatchObject({ code: 125, err: expect.stringContaining("There is no sandbox nope.") });
    expect(await run("exec", "try")).toMatchObject({ code: 2, err: expect.stringContaining("exec needs COMMAND.") });
  });

  test("hands a signal to the command and ends as it does", async () => {
    const child = viv(["exec", "try", "--", "sh", "-c", "trap 'echo heard; exit 9' TERM; echo ready; while :; do sleep 0.05; done"]);
    child.stdout.once("data", () => child.kill("SIGTERM"));
    expect(await result(child)).toMatchObject({ code: 9, out: expect.stringContaining("heard") });
  });

  test("kills the command at the second interrupt and says what ended it", async () => {
    const child = viv(["exec", "try", "--", "sh", "-c", "trap 'echo again' INT; echo ready; while :; do sleep 0.05; done"]);
    child.stdout.on("data", () => child.kill("SIGINT"));
    expect(await result(child)).toMatchObject({ code: 137, err: expect.stringContaining("SIGKILL") });
  });

  test("is quiet when its reader goes away", async () => {
    const words = program(["exec", "try", "--", "yes"])
      .map((word) => `'${word}'`)
      .join(" ");
    const piped = spawn("bash", ["-c", `'${process.execPath}' ${words} | head -1; echo \${PIPESTATUS[0]}`], {
      env: { ...process.env, VIV_HOME: server.home, VIV_NO_START: "1" },
    });
    expect(await result(piped)).toMatchObject({ out: "y\n141\n", err: "" });
  });

  test("runs in the caller's folder inside the project, with -e variables and none of its own", async () => {
    const inner = mkdtempSync(join(tmpdir(), "viv-cli-"));
    const child = viv(["exec", "-e", "A=b c", "try", "--", "sh", "-c", 'pwd; echo "$A$VIV_HOME"'], inner);
    child.stdin.end();
    expect((await result(child)).out).toBe(`${inner}\nb c\n`);
    const outside = viv(["exec", "try", "pwd"], "/");
    outside.stdin.end();
    expect((await result(outside)).out).toBe(`${tmpdir()}\n`);
    rmSync(inner, { recursive: true });
  });

  test("prints one JSON value with output and exit code when asked", async () => {
    const { code, out, err } = await run("exec", "--json", "try", "--", "sh", "-c", "echo out; echo err >&2; exit 3");
    expect(JSON.parse(out)).toMatchObject({ running: false, stdout: "out\n", stderr: "err\n", end: { exitCode: 3 } });
    expect({ code, err }).toEqual({ code: 3, err: "" });
  });
});

describe("--json", () => {
  test("makes an error an object on stdout, with the exit code of its kind", async () => {
    const { code, out, err } = await run("inspect", "nope", "--json");
    expect(JSON.parse(out)).toMatchObject({
      error: { code: "not_found", message: "There is no sandbox nope.", remedy: expect.any(String) },
    });
    expect({ code, err }).toEqual({ code: 2, err: "" });
  });

  test("prints id, name and state of a new sandbox", async () => {
    const { code, out } = await run("create", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ id: box.id, name: "try", state: "running" });
  });

  test("of a mistyped option is JSON, too", async () => {
    expect(JSON.parse((await run("ls", "--jsno", "--json")).out)).toMatchObject({
      error: { code: "usage", message: expect.stringContaining("--json") },
    });
  });
});

test("viv port leads a local port to one inside until it is interrupted", async () => {
  const echo = await echoServer();
  const address = echo.address();
  const inside = typeof address === "object" && address !== null ? address.port : 0;
  const child = viv(["port", "try", String(inside), "0", "--json"]);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { local } = JSON.parse(line.toString()) as { local: number };
  const socket = connect(local, "127.0.0.1");
  socket.end("through and back");
  expect(await text(socket)).toBe("through and back");
  child.kill("SIGINT");
  expect((await result(child)).code).toBe(0);
  echo.close();
});

test("a command that needs no connection loads neither TLS nor HTTP requests of the browser's kind, nor WebSockets", () => {
  const told = `${start} console.log(process.moduleLoadList.join("\\n"));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", told, "--", COMMAND_LINE, "version"], { encoding: "utf8" });
  expect(stdout).toContain("NativeModule internal/process/per_thread");
  expect(stdout.split("\n").filter((line) => /NativeModule (https|_?tls\w*|internal\/deps\/undici\/undici)$/.test(line))).toEqual([]);
});

describe("the server", () => {
  let copy: string;
  let main: string;

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), "viv-cli-"));
    for (const part of ["src", "test/support", "package.json"]) cpSync(join(root, part), join(copy, part), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    main = join(copy, "src", "interfaces", "cli", "main.ts");
  });
  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  /** A server program that writes its process id down, then does what it is told. */
  function plant(body: string): { home: string; env: NodeJS.ProcessEnv; started: () => number[] } {
    const home = join(copy, `home-${Math.random().toString(36).slice(2)}`);
    mkdirSync(home, { mode: 0o700 });
    const pids = join(home, "pids");
    writeFileSync(
      join(copy, "src", "server-main.ts"),
      `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(pids)}, process.pid + "\\n");\n${body}`,
    );
    const { VIV_NO_START: _, ...rest } = process.env;
    return {
      home,
      env: { ...rest, VIV_HOME: home, SECRET_OF_CALLER: "x" },
      started: () => readFileSync(pids, "utf8").trim().split("\n").map(Number),
    };
  }

  const listening = `
    import { join } from "node:path";
    import { listen } from "./interfaces/api/listen.ts";
    import { scriptedEngine } from "../test/support/cli-engine.ts";
    const engine = scriptedEngine({ listSandboxes: async () => ({ sandboxes: [] }) });
    await listen(engine, { version: "0", socketPath: join(process.env["VIV_HOME"] ?? "", "viv.sock"), onError: () => undefined });
    appendFileSync(join(process.env["VIV_HOME"] ?? "", "secret"), String(process.env["SECRET_OF_CALLER"]));
  `;

  test("is started once by ten command lines at the same moment, and holds none of their pipes", async () => {
    const { home, env, started } = plant(listening);
    const all = Array.from({ length: 10 }, () => spawn(process.execPath, program(["ls", "--json"], main), { env }));
    const results = await Promise.all(all.map(result));
    expect(results.map(({ code, out }) => [code, out])).toEqual(results.map(() => [0, '{"sandboxes":[]}\n']));
    const pids = started();
    for (const pid of pids) process.kill(pid);
    expect(pids).toHaveLength(1);
    expect(readFileSync(join(home, "secret"), "utf8")).toBe("undefined");
  });

  test("that can't start is explained in its own words", async () => {
    const { env } = plant(
      `process.stderr.write(JSON.stringify({ at: "now", level: "warn", message: "The database is newer.", code: "store_newer", remedy: "Use a newer viv." }) + "\\n"); process.exit(125);`,
    );
    expect(await result(spawn(process.execPath, program(["ls"], main), { env }))).toMatchObject({
      code: 125,
      err: "viv: The database is newer.\n     Use a newer viv. [store_newer]\n",
    });
  });

  test("that dies without a word is shown with the end of its log", async () => {
    const { env, home } = plant(`throw new Error("broken on purpose");`);
    const { code, err } = await result(spawn(process.execPath, program(["ls"], main), { env }));
    expect(code).toBe(125);
    expect(err).toContain("broken on purpose");
    expect(err).toContain(join(home, "server.log"));
  });

  test("is started over the lock of a command line that died while starting one", async () => {
    const { home, env, started } = plant(listening);
    writeFileSync(join(home, "start.lock"), String(spawnSync("true").pid));
    expect(await result(spawn(process.execPath, program(["ls", "--json"], main), { env }))).toMatchObject({ code: 0 });
    for (const pid of started()) process.kill(pid);
  });

  test("is not started where VIV_NO_START forbids it, nor by status", async () => {
    const { env } = plant(`process.exit(9);`);
    const forbidden = await result(spawn(process.execPath, program(["ls"], main), { env: { ...env, VIV_NO_START: "1" } }));
    expect(forbidden).toMatchObject({ code: 125, err: expect.stringContaining("No server runs") });
    expect(await result(spawn(process.execPath, program(["status", "--json"], main), { env }))).toMatchObject({
      code: 0,
      out: expect.stringContaining('"running":false'),
    });
  });
});
