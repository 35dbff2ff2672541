/** What every driver does. Where one can't do a thing, its capabilities say so, and the suite asks for what it does instead. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { VivError } from "../../src/base/schema/errors.ts";
import { newId } from "../../src/base/schema/ids.ts";
import type { DriverName } from "../../src/base/schema/sandbox.ts";
import type { Walls } from "../../src/machine/drivers/drivers.ts";
import { commandsContract } from "./driver-commands-contract.ts";
import { filesContract } from "./driver-files-contract.ts";
import { BEAT, beats, type Box, DriverLab, FILES, hear, textOf } from "./driver-lab.ts";

/** `done`, or the code of the refusal. */
async function outcome(work: Promise<void>): Promise<string> {
  try {
    await work;
    return "done";
  } catch (error) {
    return error instanceof VivError ? error.code : String(error);
  }
}

export function driverContract(name: DriverName): void {
  let lab: DriverLab;
  let box: Box;
  beforeAll(async () => {
    lab = await DriverLab.open(name, FILES);
    box = await lab.create();
  });
  afterAll(async () => lab?.remove());
  const run = (line: string): ReturnType<DriverLab["run"]> => lab.run(box, line);

  const startBeat = async (of: Box): Promise<void> => {
    await lab.run(of, `(${BEAT}) > /dev/null 2>&1 &`);
    await expect.poll(() => existsSync(join(of.written, "beat"))).toBe(true);
  };

  commandsContract(() => ({ lab, box }));
  filesContract(() => ({ lab, box }));

  describe("processes", () => {
    test("are listed with what they say of themselves, also where the command that began them has ended", async () => {
      const listed = await outcome(box.walls.processes(100).then(() => undefined));
      expect(listed).toBe(lab.driver.capabilities.walled ? "done" : "unsupported");
      if (!lab.driver.capabilities.walled) return;
      const own = await lab.create();
      expect(await own.walls.processes(100)).toEqual([]);
      await lab.run(own, "sleep 1234 > /dev/null 2>&1 & echo");
      const running = await own.walls.commands.exec(lab.request("exec sleep 2345"));
      const found = async (): Promise<string[]> => (await own.walls.processes(100)).map(({ command }) => command.join(" "));
      await expect.poll(found).toEqual(["sleep 1234", "sleep 2345"]);
      const [orphan, command] = await own.walls.processes(100);
      expect(orphan).toMatchObject({ name: "sleep", parent: 1, state: "S", threads: 1 });
      expect(command).toMatchObject({ pid: running.pid, parent: 1 });
      expect(Math.abs(Date.now() - (orphan?.startedAt.getTime() ?? 0))).toBeLessThan(60_000);
      expect(await own.walls.processes(1)).toHaveLength(1);
      await own.walls.stop(0);
    });
  });

  describe("ports", () => {
    test("of the sandbox are dialled, and refused where nothing listens", async () => {
      const server =
        'const s = require("net").createServer((c) => c.end("hello")).listen(0, "127.0.0.1", () => console.log(s.address().port))';
      const running = await box.walls.commands.exec(lab.request("", { command: [process.execPath, "-e", server] }));
      const said = (await running.output[Symbol.asyncIterator]().next()).value;
      const port = Number(said?.stream === "stdout" ? said.data.toString() : 0);
      const socket = await box.walls.dial(port);
      socket.end();
      expect(Buffer.concat(await socket.toArray()).toString()).toBe("hello");
      running.signal(9);
      expect((await running.exit).signal).toBe(9);
      await expect(box.walls.dial(port)).rejects.toMatchObject({ code: "port_unreachable" });
    });

    test("have a folder for their sockets where there are walls to forward through", () => {
      expect(lab.driver.sockets(box.id) !== undefined).toBe(lab.driver.capabilities.walled);
    });
  });

  describe("the life of a sandbox", () => {
    test("it is alive until it is stopped, and its processes end with it", async () => {
      const own = await lab.create();
      const exits: string[] = [];
      lab.driver.onExit((sandbox) => exits.push(sandbox));
      await own.walls.greet();
      await startBeat(own);
      expect([await own.walls.isAlive(), await beats(own)]).toEqual([true, true]);
      await own.walls.stop(0);
      expect([await own.walls.isAlive(), await beats(own)]).toEqual([false, false]);
      await expect(lab.run(own, "true")).rejects.toMatchObject({ code: "not_running" });
      expect(exits).toEqual([]);
    });

    test("a stop with a grace lets processes end by themselves", async () => {
      const own = await lab.create();
      const request = lab.request("trap 'echo bye; exit 3' TERM; echo ready; sleep 100 & wait");
      const heard = hear(await own.walls.commands.exec(request));
      const log = async (): Promise<string> => textOf(await lab.driver.logs.read(own.id, request.id));
      await expect.poll(log).toBe("ready\n");
      await own.walls.stop(5_000);
      expect(await heard).toMatchObject({ stdout: "ready\nbye\n", exit: { code: 3, timedOut: false } });
      expect(await log()).toBe("ready\nbye\n");
    });

    test("an end that was not asked for is told once", async () => {
      const own = await lab.create();
      const exits: string[] = [];
      lab.driver.onExit((sandbox) => exits.push(sandbox));
      // Without walls there is no process 1 that could end.
      expect(own.walls.processId === null).toBe(!lab.driver.capabilities.walled);
      if (own.walls.processId === null) return;
      process.kill(own.walls.processId, "SIGKILL");
      await expect.poll(() => exits).toEqual([own.id]);
      expect(await own.walls.isAlive()).toBe(false);
      await lab.driver.clear(own.id, "remove");
      expect(exits).toEqual([own.id]);
    });

    test("it stands still while it is frozen, where that can be done", async () => {
      const own = await lab.create();
      await startBeat(own);
      const frozen = await outcome(own.walls.freeze());
      const stoodStill = !(await beats(own));
      const thawed = await outcome(own.walls.thaw());
      const { pause } = lab.driver.capabilities;
      expect({ frozen, stoodStill, thawed }).toEqual(
        pause ? { frozen: "done", stoodStill: true, thawed: "done" } : { frozen: "unsupported", stoodStill: false, thawed: "unsupported" },
      );
      expect(await beats(own)).toBe(true);
      await own.walls.stop(0);
    });

    test("its use is measured as far as its limits are held", async () => {
      const { limits } = lab.driver.capabilities;
      const usage = await box.walls.usage();
      expect(usage.memoryBytes !== null).toBe(limits !== "none");
      expect([usage.outOfMemory, usage.tooManyProcesses]).toEqual([0, 0]);
      await box.walls.limit({ cpus: 2, memoryBytes: 1024 ** 3, diskBytes: 1024 ** 3, processes: 200 });
    });

    test("it hides what a launch hides now, and another wish is another mask where there are walls", async () => {
      const { walled } = lab.driver.capabilities;
      const other = { ...lab.hiding, mask: ["/etc/hostname"] };
      // Another test may mount something at the same time, and with it change what is to be hidden.
      await expect
        .poll(async () => lab.driver.hidesAsNow((await lab.create()).id, lab.hiding), { timeout: 30_000, interval: 200 })
        .toBe(true);
      expect(await lab.driver.hidesAsNow(box.id, other)).toBe(!walled);
      expect((await lab.driver.masked(other)).includes("/etc/hostname")).toBe(walled);
    });

    test("after a restart of the server it is found again, and its commands go on where there are walls", async () => {
      const own = await lab.create();
      const request = lab.request("echo early; read line; echo late $line", { stdin: true });
      const running = await own.walls.commands.exec(request);
      running.exit.catch(() => undefined);
      expect((await running.output[Symbol.asyncIterator]().next()).value).toMatchObject({ data: Buffer.from("early\n") });
      running.detach();
      await lab.restart();
      box = { ...box, walls: await found(box) };
      const walls = await found(own);
      expect(await walls.isAlive()).toBe(true);
      expect((await lab.run({ walls }, "cat a.txt")).stdout).toBe("one\ntwo\n");
      const attached = await walls.commands.attach(request.id, true);
      await attached?.write(Buffer.from("hello\n"));
      const heard = attached === undefined ? undefined : (await hear(attached)).stdout;
      expect(heard).toBe(lab.driver.capabilities.walled ? "late hello\n" : undefined);
      expect(textOf(await lab.driver.logs.read(own.id, request.id))).toBe(attached === undefined ? "early\n" : "early\nlate hello\n");
      await walls.stop(0);
    });
    const found = async (of: Box): Promise<Walls> => {
      const walls = await lab.adopt(of);
      if (walls === undefined) throw new Error(`${of.id} was not found again`);
      return walls;
    };

    test("clear keeps the logs of one that ended, or removes them with the rest", async () => {
      const own = await lab.create();
      const request = lab.request("echo kept");
      await hear(await own.walls.commands.exec(request));
      await own.walls.stop(0);
      const log = async (): Promise<string> => textOf(await lab.driver.logs.read(own.id, request.id));
      for (let times = 0; times < 2; times += 1) await lab.driver.clear(own.id, "keep");
      expect(await log()).toBe("kept\n");
      expect(await lab.adopt(own)).toBeUndefined();
      expect(await lab.adopt({ ...own, id: newId("sandbox") })).toBeUndefined();
      for (let times = 0; times < 2; times += 1) await lab.driver.clear(own.id, "remove");
      expect(await log()).toBe("");
    });

    test("reconcile ends and clears what is not kept, and only that", async () => {
      const lost = await lab.create();
      await startBeat(lost);
      const request = lab.request("echo lost");
      await hear(await lost.walls.commands.exec(request));
      const removed = await lab.driver.reconcile(async () => new Set([box.id]));
      expect(removed.filter((line) => line.includes(lost.id))).toHaveLength(1);
      expect(removed.join()).not.toContain(box.id);
      expect(await beats(lost)).toBe(false);
      expect(textOf(await lab.driver.logs.read(lost.id, request.id))).toBe("");
      expect((await run("echo still here")).stdout).toBe("still here\n");
      expect(await lab.driver.reconcile(async () => new Set([box.id]))).toEqual([]);
    });
  });
}
