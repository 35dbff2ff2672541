/** The front of the command line: what it prints, says and ends with is what Node's `viv` does, and what it can't do it gives to Node. */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHECKOUT, PROGRAM } from "../support/compiled.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { vivEnvironment } from "../support/viv.ts";

const FRONT = join(CHECKOUT, "build/front");
const NO_NODE = "/nonexistent/node";

interface Case {
  readonly words: readonly string[];
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Ids, times and what they make of the columns differ from one run to the next. */
function steady(text: string): string {
  return text
    .replaceAll(/\b(cmd|sbx|exp)[a-z0-9]{26}\b/g, "$1-ID")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replaceAll(/"(pid|wallMs|cpuMs|maxRssBytes|peakMemoryBytes)":\d+(\.\d+)?/g, '"$1":N')
    .replaceAll(/\bnow\b|\b\d+ (s|min|h|ms)( ago)?\b/g, "AGO")
    .replaceAll(/ +/g, " ");
}

describe("the front", needs("root", "compiler"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "hello.txt": "hello\n", "deep/er/x": "1\n" } });
    await server.create({ name: "try" });
  });

  afterAll(async () => server.remove());

  function outcome(command: string, before: readonly string[], { words, input = "", env, cwd = server.project }: Case): object {
    const ended = spawnSync(command, [...before, ...words], {
      cwd,
      input,
      env: vivEnvironment(server, { SHELL: "/bin/sh", ...env }),
      maxBuffer: 64 * 1024 ** 2,
      timeout: 25_000,
    });
    const [out, err] = [ended.stdout, ended.stderr].map((bytes) => steady(bytes.toString("latin1")));
    return { out, err, code: ended.status, signal: ended.signal };
  }

  /** A front that can't start Node: what it does, it does itself. */
  const byFront = (one: Case): object => outcome(FRONT, [NO_NODE, PROGRAM], one);
  const byNode = (one: Case): object => outcome(process.execPath, [PROGRAM], one);

  test.each<[string, () => Case]>([
    ["output, errors and exit code", () => ({ words: ["exec", "try", "--", "sh", "-c", "echo out; echo err >&2; exit 7"] })],
    ["a command line without --", () => ({ words: ["exec", "try", "ls", "-d", "/etc"] })],
    ["options of the inner command", () => ({ words: ["exec", "try", "echo", "--json", "-x", "--", "-y"] })],
    ["odd words", () => ({ words: ["exec", "try", "--", "printf", "%s|", "", "a b", "ü€😀", "two\nlines", "$HOME", "'"] })],
    ["a folder below the project", () => ({ words: ["exec", "try", "--", "pwd"], cwd: join(server.project, "deep/er") })],
    ["a folder outside the project", () => ({ words: ["exec", "try", "--", "pwd"], cwd: "/usr" })],
    ["a folder by option", () => ({ words: ["exec", "-w", "er", "try", "--", "pwd"], cwd: join(server.project, "deep") })],
    ["a folder that is not there", () => ({ words: ["exec", "--cwd=/not/there", "try", "--", "pwd"] })],
    [
      "variables",
      () => ({ words: ["exec", "-e", "A=b=c", "--env", "MINE", "try", "--", "sh", "-c", "echo $A $MINE"], env: { MINE: "1 2" } }),
    ],
    ["a variable that is not there", () => ({ words: ["exec", "-e", "MISSING_ONE", "try", "--", "true"] })],
    ["a user", () => ({ words: ["exec", "-u", "nobody", "try", "--", "id", "-un"] })],
    ["a user that is not there", () => ({ words: ["exec", "--user", "nope", "try", "--", "id"] })],
    ["a time limit", () => ({ words: ["exec", "--timeout", "300ms", "try", "--", "sleep", "20"] })],
    ["a wrong duration", () => ({ words: ["exec", "--timeout", "soon", "try", "--", "true"] })],
    ["a terminal by force", () => ({ words: ["exec", "-t", "try", "--", "sh", "-c", "stty size; echo $TERM"], env: { TERM: "vt100" } })],
    [
      "much output on both streams",
      () => ({ words: ["exec", "try", "--", "sh", "-c", "seq 1 300000; seq 1 200000 >&2; seq 1 300000; exit 3"] }),
    ],
    ["much output on a terminal", () => ({ words: ["exec", "-t", "try", "--", "sh", "-c", "seq 1 100000"], env: { TERM: "vt100" } })],
    ["a death by signal", () => ({ words: ["exec", "try", "--", "sh", "-c", "kill -9 $$"] })],
    ["a program that is not there", () => ({ words: ["exec", "try", "--", "no-such-program"] })],
    ["a file that is no program", () => ({ words: ["exec", "try", "--", "/etc/passwd"] })],
    ["a sandbox that is not there", () => ({ words: ["exec", "nowhere", "--", "true"] })],
    ["no sandbox", () => ({ words: ["exec"] })],
    ["no command", () => ({ words: ["exec", "try"] })],
    ["an unknown option", () => ({ words: ["exec", "--nope", "try", "--", "true"] })],
    ["an option of another program", () => ({ words: ["exec", "-it", "try", "--", "true"] })],
    ["help", () => ({ words: ["exec", "--help"] })],
    ["JSON", () => ({ words: ["exec", "--json", "try", "--", "sh", "-c", "printf 'a\\033b'; exit 3"] })],
    ["JSON of an error", () => ({ words: ["exec", "--json", "nowhere", "--", "true"] })],
    ["a command in the background", () => ({ words: ["exec", "-d", "try", "--", "true"] })],
    ["standard input", () => ({ words: ["exec", "try", "--", "md5sum"], input: Buffer.alloc(3_000_000, "input\0\xff") })],
    ["no standard input", () => ({ words: ["exec", "--no-stdin", "try", "--", "cat"], input: "unread" })],
    ["input that is not read", () => ({ words: ["exec", "try", "--", "true"], input: Buffer.alloc(3_000_000) })],
    ["a shell", () => ({ words: ["shell", "try"], input: "echo in; exit 4\n" })],
    ["a list", () => ({ words: ["ls"] })],
    ["names alone", () => ({ words: ["ls", "-q"] })],
    ["a list as JSON", () => ({ words: ["ls", "--json", "--project", "."] })],
    ["a state that is not there", () => ({ words: ["ls", "--state", "bogus"] })],
    ["a word too many", () => ({ words: ["ls", "extra"] })],
    ["a list of commands", () => ({ words: ["ps", "try"] })],
    ["a throw-away clone", () => ({ words: ["run", "--", "cat", "hello.txt"] })],
    ["an environment in a clone", () => ({ words: ["run", "--", "sh", "-c", "echo $LANG"], env: { LANG: "xx" } })],
    ["options that exclude each other", () => ({ words: ["run", "--rm", "--keep", "--", "true"] })],
    ["an image", () => ({ words: ["run", "debian:12", "true"] })],
    ["an experiment in the background", () => ({ words: ["try", "true", "--detach"] })],
    ["nothing to try", () => ({ words: ["try"] })],
    ["help for experiments", () => ({ words: ["try", "--help"] })],
    ["a question without a terminal", () => ({ words: ["try", "true", "--pick", "ask"] })],
    ["an experiment that is not there", () => ({ words: ["try", "--resume", "exp00000000000000000000000000"] })],
    ["approaches for an experiment that has its own", () => ({ words: ["try", "--resume", "exp1", "true"] })],
  ])("does with %s what Node's does", (_, make) => {
    const one = make();
    expect(byFront(one)).toEqual(byNode(one));
    expect(byFront(one)).not.toMatchObject({ err: expect.stringContaining(NO_NODE) });
  });

  test.each([["version"], ["--version"], ["-V"]])("prints the version for %s as Node's does", (word) => {
    const viv = { words: [word] };
    expect(byFront(viv)).toEqual(outcome(join(CHECKOUT, "node_modules/vivarium/bin/node"), [PROGRAM], viv));
  });

  describe("gives to Node", () => {
    const given = (one: Case): object => {
      const node = join(server.place, "node");
      if (!existsSync(node)) {
        writeFileSync(node, `#!/bin/sh\nshift\nprintf '%s|' given "$@"\nexit 9\n`);
        chmodSync(node, 0o755);
      }
      return outcome(FRONT, [node, PROGRAM], one);
    };

    test.each<[string, () => Case]>([
      ["other commands", () => ({ words: ["status", "a b", ""] })],
      ["a file that is the caller's to read", () => ({ words: ["try", "-f", "attempts.json"] })],
      ["no command", () => ({ words: [] })],
      ["the version with more words", () => ({ words: ["version", "--json"] })],
      ["words when no server runs", () => ({ words: ["ls"], env: { VIV_HOME: join(server.place, "elsewhere") } })],
      ["a state folder that is not written plainly", () => ({ words: ["ls"], env: { VIV_HOME: `${server.paths.home}/../state/` } })],
      ["a caller that looks for defects", () => ({ words: ["ls"], env: { VIV_DEBUG: "1" } })],
    ])("%s", (_, make) => {
      const one = make();
      expect(given(one)).toMatchObject({ out: ["given", ...one.words, ""].join("|"), code: 9 });
    });

    test("words that are no UTF-8", () => {
      const line = `printf 'ls\\n\\377' | xargs -d '\\n' "$0" "$1" x`;
      given({ words: [] });
      const { stdout } = spawnSync("sh", ["-c", line, FRONT, join(server.place, "node")], { env: vivEnvironment(server) });
      expect(stdout.toString("latin1")).toBe("given|ls|\xff|");
    });
  });

  test("finds the server by a state folder behind a link", () => {
    const linked = join(server.place, "linked");
    mkdirSync(join(server.place, "real"), { recursive: true });
    symlinkSync(join(server.paths.home, ".."), linked);
    const VIV_HOME = join(linked, server.paths.home.split("/").at(-1) ?? "");
    expect(byFront({ words: ["ls", "-q"], env: { VIV_HOME } })).toMatchObject({ code: 0, out: expect.stringContaining("try\n") });
  });

  const both = [
    ["the front", FRONT, [NO_NODE, PROGRAM]],
    ["Node", process.execPath, [PROGRAM]],
  ] as const;

  test.each(both)("a reader that goes away ends the command with 141 (%s)", (_, command, before) => {
    const line = `"$@" exec try -- yes | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout } = spawnSync("bash", ["-c", line, "bash", command, ...before], { env: vivEnvironment(server), encoding: "utf8" });
    expect(stdout).toBe("y\n141\n");
  });

  test.each(both)("a reader that goes away in much output ends the command with 141 (%s)", (_, command, before) => {
    const line = `"$@" exec try -- yes | head -c 5000000 | md5sum; echo "\${PIPESTATUS[0]}"`;
    const { stdout } = spawnSync("bash", ["-c", line, "bash", command, ...before], { env: vivEnvironment(server), encoding: "utf8" });
    const wanted = spawnSync("sh", ["-c", "yes | head -c 5000000 | md5sum"], { encoding: "utf8" }).stdout;
    expect(stdout).toBe(`${wanted}141\n`);
  });

  test("a command in the middle of much output ends when its front is killed", async () => {
    const mark = randomBytes(6).toString("hex");
    const child = spawn(FRONT, [NO_NODE, PROGRAM, "exec", "try", "--", "sh", "-c", `yes ${mark}`], { env: vivEnvironment(server) });
    let bytes = 0;
    child.stdout.on("data", (data: Buffer) => (bytes += data.length));
    await eventually(
      () => bytes,
      (now) => now > 8 * 1024 ** 2,
    );
    child.kill("SIGKILL");
    const status = await eventually(
      () => spawnSync("pgrep", ["-f", `yes ${mark}`]).status,
      (found) => found === 1,
    );
    expect(status).toBe(1);
  });

  test.each(both)("signals are the command's, and a second interrupt kills it (%s)", async (_, command, before) => {
    const start = (script: string) =>
      spawn(command, [...before, "exec", "try", "--", "sh", "-c", script], { cwd: server.project, env: vivEnvironment(server) });
    const polite = start("trap 'echo term; exit 5' TERM; trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done");
    let heard = "";
    polite.stdout.on("data", (data: Buffer) => (heard += data.toString()));
    await eventually(
      () => heard,
      (text) => text.includes("ready"),
    );
    polite.kill("SIGUSR1");
    await eventually(
      () => heard,
      (text) => text.includes("usr1"),
    );
    polite.kill("SIGTERM");
    expect(await once(polite, "close")).toEqual([5, null]);
    expect(heard).toBe("ready\nusr1\nterm\n");
    const stubborn = start("trap '' INT; echo ready; while :; do sleep 0.1; done");
    await once(stubborn.stdout, "data");
    stubborn.kill("SIGINT");
    stubborn.kill("SIGINT");
    setTimeout(() => stubborn.kill("SIGINT"), 300);
    expect(await once(stubborn, "close")).toEqual([137, null]);
  });

  test("a command ends when its front is killed, and the clone of viv run goes", async () => {
    const mark = randomBytes(6).toString("hex");
    const child = spawn(FRONT, [NO_NODE, PROGRAM, "run", "--", "sh", "-c", `echo ready; exec sleep 1000 ${mark}`], {
      cwd: server.project,
      env: vivEnvironment(server),
    });
    const before = (await server.client.call("listSandboxes", {})).sandboxes.length;
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await eventually(
      async () => (await server.client.call("listSandboxes", {})).sandboxes.length,
      (count) => count <= before,
    );
    expect(spawnSync("pgrep", ["-f", mark]).status).toBe(1);
  });

  test("input waits for a command that does not read it, and a signal does not wait behind it", async () => {
    const child = spawn(FRONT, [NO_NODE, PROGRAM, "exec", "try", "--", "sh", "-c", "trap 'exit 6' TERM; echo ready; sleep 100 & wait"], {
      cwd: server.project,
      env: vivEnvironment(server),
    });
    let taken = 0;
    const feed = (): void => {
      while (child.stdin.write(Buffer.alloc(65_536))) taken += 65_536;
    };
    child.stdin.on("error", () => undefined);
    child.stdin.on("drain", feed);
    feed();
    await once(child.stdout, "data");
    let before = 0;
    // What has ended takes all input until its end is told: the bound counts before that.
    await eventually(
      () => [before, (before = taken)],
      ([last, now]) => now !== undefined && now > 0 && last === now,
    );
    expect(before).toBeLessThan(4 * 1024 ** 2);
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([6, null]);
  });
});

describe("a server that goes away", needs("root", "compiler"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ files: { a: "1\n" } });
    await server.create({ name: "try" });
  });

  afterAll(async () => server.remove());

  test("is told of by the front as by Node, with the same exit code", async () => {
    const start = async (command: string, before: readonly string[]) => {
      const words = ["exec", "try", "--", "sh", "-c", "echo ready; sleep 1000"];
      const child = spawn(command, [...before, ...words], { cwd: server.project, env: vivEnvironment(server) });
      const said = { err: "", closed: once(child, "close") };
      child.stderr.on("data", (data: Buffer) => (said.err += data.toString()));
      await once(child.stdout, "data");
      return said;
    };
    const front = await start(FRONT, [NO_NODE, PROGRAM]);
    const node = await start(process.execPath, [PROGRAM]);
    await server.kill();
    expect(await front.closed).toEqual([125, null]);
    expect(await node.closed).toEqual([125, null]);
    expect(front.err).toContain("broke off");
    expect(front.err).toBe(node.err);
    await server.up();
  });

  test("in the middle of much output is told of, and the command goes on into its log", async () => {
    const script = "head -c 20000000 /dev/zero | tr '\\0' x; sleep 1; head -c 20000000 /dev/zero | tr '\\0' y; echo end";
    const child = spawn(FRONT, [NO_NODE, PROGRAM, "exec", "try", "--", "sh", "-c", script], {
      cwd: server.project,
      env: vivEnvironment(server),
    });
    let [bytes, err] = [0, ""];
    child.stdout.on("data", (data: Buffer) => (bytes += data.length));
    child.stderr.on("data", (data: Buffer) => (err += data.toString()));
    const closed = once(child, "close");
    await eventually(
      () => bytes,
      (now) => now === 20_000_000,
    );
    await server.kill();
    expect(await closed).toEqual([125, null]);
    expect(err).toContain("broke off");
    await server.up();
    const ended = await eventually(
      async () =>
        (await server.client.call("listCommands", { sandbox: "try", all: true })).commands.find(({ command }) => command.includes(script)),
      (command) => command?.end !== null,
    );
    expect(ended?.end).toMatchObject({ exitCode: 0, outputBytes: 40_000_004 });
    const logged = await server.client.call("inspectCommand", { sandbox: "try", command: ended?.id ?? "" });
    expect(logged.stdout.endsWith("yyyyend\n")).toBe(true);
  });
});
