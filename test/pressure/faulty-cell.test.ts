/** F-27 and F-28 of the fault list: a native helper that is missing, wrong, replaced, or hangs. */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { isListening } from "../../src/interfaces/client/listening.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { PROGRAM } from "../support/compiled.ts";
import { vivEnvironment } from "../support/viv.ts";

const BUILT = fileURLToPath(new URL("../../build/cell", import.meta.url));

/** The helper of a server, by the command it was started with. Never 0 or 1: signals to those hit others. */
function cellHost(server: TestServer): number {
  const found = readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        const parent = / (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) . */s, " "))?.[1];
        return parent === String(server.pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").endsWith("\0host\0");
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);
  const [host] = found;
  if (host === undefined || host <= 1) throw new Error("the server has no helper");
  return host;
}

describe("the cell of a server", needs("root"), () => {
  let server: TestServer;
  let cell: string;
  let box: Sandbox;
  let command: string;

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false } });
    await server.down();
    cell = join(server.place, "cell");
    await restore();
    box = await server.create();
    command = (await server.sh(box.id, "while :; do echo tick; sleep 0.1; done", { background: true })).id;
  });
  // Whatever a test did to the cell, the next one starts with an honest one.
  afterEach(async () => {
    if (!(await isHonest())) await restore();
  });
  afterAll(async () => {
    await server.remove();
  });

  /** An honest copy, and a server that uses it. */
  async function restore(): Promise<void> {
    await server.down();
    rmSync(cell, { force: true });
    copyFileSync(BUILT, cell);
    chmodSync(cell, 0o755);
    await server.up({ VIV_CELL: cell });
  }

  async function isHonest(): Promise<boolean> {
    if (!existsSync(cell) || (statSync(cell).mode & 0o777) !== 0o755 || !readFileSync(cell).equals(readFileSync(BUILT))) return false;
    return isListening(server.paths.socket);
  }

  async function expectUntouched(): Promise<void> {
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "running" });
    const ticks = async (): Promise<number> =>
      (await server.client.call("inspectCommand", { sandbox: box.id, command })).stdout.split("\n").length;
    const before = await ticks();
    await eventually(ticks, (now) => now > before);
    expect((await server.sh(box.id, "echo alive")).stdout).toBe("alive\n");
  }

  const damages: readonly (readonly [what: string, damage: (path: string) => void, says: RegExp])[] = [
    ["is missing", (path) => rmSync(path), /can't be (used|run).*ENOENT/],
    ["may not be executed", (path) => chmodSync(path, 0o644), /can't be (used|run).*EACCES/],
    ["is of another version", (path) => replace(path, "#!/bin/sh\necho 2\n"), /another version: it speaks "2", this program 1/],
    ["is another program", (path) => replace(path, "#!/bin/sh\nexit 3\n"), /ends with 3/],
    ["is no program at all", (path) => replace(path, "\0garbage"), /can't be used|ends with|another version/],
    ["says far too much, as in F-30,", (path) => replace(path, "#!/bin/sh\nyes\n"), /wrote more than/],
  ];

  test.each(damages)("F-27: that %s is told in clear words, nothing is made without it, and sandboxes go on", async (_, damage, says) => {
    const { processId } = await server.client.call("inspectSandbox", { sandbox: box.id });
    damage(cell);
    // The helper that runs was loaded when it was whole: it serves until the server ends.
    await expectUntouched();
    const { findings } = await server.client.call("doctor", {});
    expect(findings.find(({ check }) => check === "native helper")).toMatchObject({
      verdict: "missing",
      detail: expect.stringMatching(says),
    });
    await server.down();
    const create = spawnSync(PROGRAM, ["create", "--project", server.project], {
      env: vivEnvironment(server, { VIV_CELL: cell }),
      timeout: 25_000,
    });
    expect(create.status).not.toBe(0);
    expect(create.stderr.toString()).toMatch(says);
    expect(create.stderr.toString()).toContain("npm run setup");
    await restore();
    expect((await server.client.call("inspectSandbox", { sandbox: box.id })).processId).toBe(processId);
    await expectUntouched();
    expect((await server.client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
  });

  test("F-27: that can make no walls any more makes none, and sandboxes go on until one comes that can", async () => {
    await server.down();
    replace(cell, `#!/bin/sh\n[ "$1" = probe ] && echo overlay=1 || exec "${BUILT}" "$@"\n`);
    await server.up({ VIV_CELL: cell });
    await expect(server.create()).rejects.toMatchObject({ code: "no_walls" });
    await expect(server.sh(box.id, "echo alive")).rejects.toMatchObject({ code: expect.stringMatching(/^(no_walls|not_running)$/) });
    await restore();
    await expectUntouched();
  });

  test("F-27: that is replaced during a run is not the one that works: the server goes on with what it loaded", async () => {
    const ran = join(server.place, "the-other-one-ran");
    rmSync(cell);
    replace(cell, `#!/bin/sh\ntouch ${ran}\nexit 1\n`);
    const host = cellHost(server);
    expect(readlinkSync(`/proc/${host}/exe`)).toBe(`${cell} (deleted)`);
    const made = await server.create();
    expect((await server.sh(made.id, "cat hello.txt")).stdout).toBe("hello\n");
    await server.client.call("removeSandbox", { sandbox: made.id });
    expect(existsSync(ran)).toBe(false);
    await expectUntouched();
    await restore();
  });

  test("F-28: whose helper is killed gets another one, and only a request under way notices", async () => {
    const { pid } = server;
    writeFileSync(join(server.project, "before.txt"), "1\n");
    await server.client.call("removeSandbox", { sandbox: (await server.create()).id });
    const first = cellHost(server);
    // What the first helper saw of reality is lost with it.
    writeFileSync(join(server.project, "between.txt"), "2\n");
    process.kill(first, "SIGKILL");
    await eventually(
      () => isRunning(first),
      (running) => !running,
    );
    const made = await server.create();
    expect((await server.sh(made.id, "cat between.txt before.txt")).stdout).toBe("2\n1\n");
    expect(server.pid).toBe(pid);
    expect(cellHost(server)).not.toBe(first);
    await expectUntouched();
    // The new one watches over sandboxes of the first.
    const { processId } = await server.client.call("inspectSandbox", { sandbox: made.id });
    process.kill(cellHost(server), "SIGKILL");
    process.kill(processId ?? 0, "SIGKILL");
    await eventually(
      () => server.client.call("inspectSandbox", { sandbox: made.id }),
      ({ state }) => state === "failed",
      2_000,
    );
    await server.client.call("removeSandbox", { sandbox: made.id });
    await expectUntouched();
    // A server gives up after too many ends of its helper, and the next test ends one, too.
    await restore();
  });

  test("F-28: whose helper hangs gets another one: who waits is told or served, and every sandbox goes on", async () => {
    const { pid } = server;
    const host = cellHost(server);
    process.kill(host, "SIGSTOP");
    const began = performance.now();
    const told = await server.create().then(
      () => "served",
      (error: { code: string; remedy: string }) => `${error.code}: ${error.remedy}`,
    );
    expect(told).toMatch(/^(served|cell_failed: Try again.*)$/);
    expect(performance.now() - began).toBeLessThan(LIMITS.cellSilenceMs * 2);
    expect(cellHost(server)).not.toBe(host);
    expect(server.pid).toBe(pid);
    await expectUntouched();
    const made = await server.create();
    await server.client.call("removeSandbox", { sandbox: made.id });
    for (const { id } of (await server.client.call("listSandboxes", {})).sandboxes)
      if (id !== box.id) await server.client.call("removeSandbox", { sandbox: id });
  }, 60_000);

  test("F-28: that hangs when it is asked for its version does not keep a server from saying so", async () => {
    await server.down();
    replace(cell, "#!/bin/sh\nexec sleep 1000\n");
    await expect(server.up({ VIV_CELL: cell })).rejects.toThrow("does not answer");
    await restore();
    await expectUntouched();
  }, 60_000);
});

/** Another file in its place: a program that runs can't be written to. */
function replace(path: string, content: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, content, { mode: 0o755 });
}
