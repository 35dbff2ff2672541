/** `viv try` by the front: carried out in the server, and gone on with by Node if the server goes away. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { CHECKOUT, PROGRAM } from "../support/compiled.ts";
import { Lab } from "../support/experiments.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { Terminal } from "../support/terminal.ts";
import { vivEnvironment } from "../support/viv.ts";

const FRONT = join(CHECKOUT, "build/front");
const NO_NODE = "/nonexistent/node";
const FIX = "echo right > value";
const CHECK = ["--check", "grep -q right value"];

describe("viv try by the front", needs("root", "compiler"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start({ files: { value: "wrong\n" } });
    lab = new Lab(server);
  });

  afterAll(async () => server.remove());

  interface Said {
    readonly child: ChildProcess;
    out: string;
    err: string;
    readonly closed: Promise<unknown[]>;
  }

  function start(node: string, ...words: string[]): Said {
    const child = spawn(FRONT, [node, PROGRAM, "try", ...words], { cwd: server.project, env: vivEnvironment(server) });
    const said = { child, out: "", err: "", closed: once(child, "close") };
    child.stdout.on("data", (data: Buffer) => (said.out += data.toString()));
    child.stderr.on("data", (data: Buffer) => (said.err += data.toString()));
    return said;
  }

  const newest = async () => {
    const { experiments } = await server.client.call("listExperiments", {});
    return experiments.toSorted((one, other) => (one.createdAt < other.createdAt ? 1 : -1))[0];
  };

  /** Until the line of an attempt that runs was shown. */
  const runs = (said: Said): Promise<string> =>
    eventually(
      () => said.err,
      (err) => err.includes("running"),
    );

  test("tells the steps, who wins and what to do next, and ends with 0", async () => {
    const said = start(NO_NODE, FIX, "true", ...CHECK);
    expect(await said.closed).toEqual([0, null]);
    expect(said.out).toContain("1 file +1 -1");
    expect(said.out).toContain("Attempt 1 won");
    expect(said.err).toContain("2 attempts");
  });

  test("prints one JSON object with --json, and ends with 1 without a winner", async () => {
    const said = start(NO_NODE, "true", ...CHECK, "--json");
    expect(await said.closed).toEqual([1, null]);
    expect(JSON.parse(said.out)).toMatchObject({ state: "done", winner: null });
  });

  test("an interrupt cancels the experiment, and the exit code is 130", async () => {
    const said = start(NO_NODE, "sleep 60", ...CHECK);
    await runs(said);
    said.child.kill("SIGINT");
    expect(await said.closed).toEqual([130, null]);
    expect(said.err).toContain("stopping");
    expect(await newest()).toMatchObject({ state: "cancelled" });
  });

  test("draws the attempts in place on a terminal, and asks there who wins", async () => {
    const words = ["try", FIX, "echo right >> value", ...CHECK, "--pick", "ask"];
    const terminal = new Terminal(server, words, server.project, [FRONT, NO_NODE, PROGRAM]);
    try {
      await terminal.until("Which one wins?");
      terminal.type("nobody\r");
      await terminal.until("There is no attempt");
      terminal.type("2\r");
      expect(await terminal.end()).toBe(0);
      expect(terminal.shown).toContain("Attempt 2 was chosen by a person.");
      expect(terminal.shown).toContain("\u001b[3A");
    } finally {
      terminal.close();
    }
    expect(await newest()).toMatchObject({ state: "done", winner: 2 });
  });

  test("ctrl-C at a terminal cancels", async () => {
    const terminal = new Terminal(server, ["try", "sleep 60", ...CHECK], server.project, [FRONT, NO_NODE, PROGRAM]);
    try {
      await terminal.until("running");
      terminal.type("\u0003");
      expect(await terminal.end()).toBe(130);
    } finally {
      terminal.close();
    }
    expect(await newest()).toMatchObject({ state: "cancelled" });
  });

  test("a third interrupt leaves at once", async () => {
    const said = start(NO_NODE, "trap '' TERM; sleep 60", ...CHECK);
    await runs(said);
    for (const word of ["stopping", "killing"]) {
      said.child.kill("SIGINT");
      await eventually(
        () => said.err,
        (err) => err.includes(word),
      );
    }
    said.child.kill("SIGINT");
    expect(await said.closed).toEqual([130, null]);
  });

  test("the experiment goes on when the front is killed", async () => {
    const said = start(NO_NODE, `sleep 1; ${FIX}`, ...CHECK);
    await runs(said);
    said.child.kill("SIGKILL");
    await said.closed;
    expect(await lab.end((await newest())?.id ?? "")).toMatchObject({ state: "done", winner: 1 });
  });

  test("goes on in Node when the server is killed, to the same end", async () => {
    const said = start(process.execPath, `sleep 2; ${FIX}`, ...CHECK);
    await runs(said);
    await server.kill();
    await eventually(
      () => said.err,
      (err) => err.includes("the server is away; starting it again"),
    );
    expect(await said.closed).toEqual([0, null]);
    expect(said.out).toContain("Attempt 1 won");
    // The server that the command line started makes room for one of this test.
    const { pid } = await server.client.call("status", {});
    await server.client.call("shutdown", {});
    await eventually(
      () => isRunning(pid),
      (running) => !running,
    );
    await server.up();
  });

  test("waits in Node for a server that was stopped, and an interrupt there still cancels", async () => {
    const said = start(process.execPath, "sleep 60", ...CHECK);
    await runs(said);
    const before = said.err.length;
    await server.down();
    await eventually(
      () => said.err,
      (err) => err.slice(before).includes("waiting for it to come back"),
    );
    await server.up();
    await eventually(
      () => said.err.slice(before),
      (err) => err.includes("running"),
      20_000,
    );
    said.child.kill("SIGINT");
    expect(await said.closed).toEqual([130, null]);
    expect(await newest()).toMatchObject({ state: "cancelled" });
  });
});
