/** What commands of every driver do, and what their logs hold. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { VivError } from "../../src/base/schema/errors.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { ExecRequest } from "../../src/machine/drivers/drivers.ts";
import { BEAT, beats, type Box, type DriverLab, FILES, hear, type Heard, textOf, type Tried } from "./driver-lab.ts";

export function commandsContract(tried: () => Tried): void {
  let lab: DriverLab;
  let box: Box;
  beforeAll(() => {
    ({ lab, box } = tried());
  });
  const run = (line: string, more: Partial<ExecRequest> = {}): Promise<Heard> => lab.run(box, line, more);

  describe("commands", () => {
    test("run in the sandbox's project and leave the real one alone", async () => {
      const { stdout, exit } = await run("echo more >> a.txt; cat a.txt");
      expect(stdout).toBe("one\ntwo\nmore\n");
      expect(exit).toMatchObject({ code: 0, signal: null, timedOut: false, outputBytes: stdout.length, droppedBytes: 0 });
      expect(readFileSync(join(box.written, "a.txt"), "utf8")).toBe(stdout);
      expect(readFileSync(join(lab.project, "a.txt"), "utf8")).toBe("one\ntwo\n");
      expect((await run("cat main.js", { cwd: join(lab.project, "src") })).stdout).toBe(FILES["src/main.js"]);
    });

    test("get the given environment and nothing of the server's", async () => {
      const { stdout } = await run("env", { env: { PATH: "/usr/bin:/bin", GREETING: "http://hello" } });
      expect(stdout).toContain("GREETING=http://hello\n");
      expect(stdout).toContain("PATH=/usr/bin:/bin\n");
      for (const inherited of ["VITEST", "NODE_ENV", "VIV_CELL"]) expect(stdout).not.toContain(`${inherited}=`);
    });

    test("tell their exit code, their signal, and both streams", async () => {
      expect(await run("echo out; echo err >&2; exit 7")).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exit: { code: 7, signal: null },
      });
      expect((await run("kill -9 $$")).exit).toMatchObject({ code: null, signal: 9 });
    });

    test("read what is written to them until it ends, and nothing where they have no input", async () => {
      const running = await box.walls.commands.exec(lab.request("cat", { stdin: true }));
      const heard = hear(running);
      const large = Buffer.alloc(1_000_000, "z");
      await running.write(large);
      running.endInput();
      expect((await heard).stdout.length).toBe(large.length);
      expect((await run("cat; echo none")).stdout).toBe("none\n");
    });

    test("that do not exist, can't be run, or have no folder are refused by name", async () => {
      await expect(run("", { command: ["no-such-program"] })).rejects.toMatchObject({ code: "command_not_found" });
      await expect(run("", { command: [join(lab.project, "a.txt")] })).rejects.toMatchObject({ code: "command_not_runnable" });
      await expect(run("true", { cwd: join(lab.project, "nowhere") })).rejects.toMatchObject({ code: "file_not_found" });
    });

    test("have a terminal where there are walls", async () => {
      const asked = run("test -t 1 && stty size", { terminal: { rows: 24, cols: 80 } });
      const said = await asked.then(
        ({ stdout }) => stdout,
        (error: VivError) => error.code,
      );
      expect(said).toBe(lab.driver.capabilities.walled ? "24 80\r\n" : "unsupported");
    });

    test("are ended at their time limit, politely first, with everything that they started", async () => {
      const polite = await run("trap 'echo bye; exit 3' TERM; sleep 100 & wait", { timeoutMs: 1_000 });
      expect(polite).toMatchObject({ stdout: "bye\n", exit: { timedOut: true, code: 3 } });
      const stubborn = await run(`trap '' TERM; (${BEAT}) & while :; do sleep 1; done`, { timeoutMs: 1_000 });
      expect(stubborn.exit).toMatchObject({ timedOut: true, signal: 9 });
      expect(await beats(box)).toBe(false);
    });

    test("are ended by a signal", async () => {
      const running = await box.walls.commands.exec(lab.request("exec sleep 100"));
      running.signal(15);
      expect((await hear(running)).exit).toMatchObject({ code: null, signal: 15, timedOut: false });
    });

    test("wait while their output has no reader, and none of it is lost", async () => {
      const running = await box.walls.commands.exec(lab.request("head -c 3000000 /dev/zero; touch finished"));
      await wait(300);
      expect(existsSync(join(box.written, "finished"))).toBe(false);
      const { stdout, exit } = await hear(running);
      expect([stdout.length, exit.outputBytes]).toEqual([3_000_000, 3_000_000]);
      expect(existsSync(join(box.written, "finished"))).toBe(true);
    });

    test("go on when a caller stops listening, and can be attached to until they end", async () => {
      const { commands } = box.walls;
      const request = lab.request("echo early; read line; echo late $line", { stdin: true });
      const running = await commands.exec(request);
      expect((await running.output[Symbol.asyncIterator]().next()).value).toMatchObject({ data: Buffer.from("early\n") });
      running.detach();
      const attached = await commands.attach(request.id, true);
      expect(attached?.offset).toBe(6);
      await attached?.write(Buffer.from("hello\n"));
      expect(attached === undefined ? undefined : (await hear(attached)).stdout).toBe("late hello\n");
      expect(await commands.attach(request.id, false)).toBeUndefined();
      expect(await commands.attach(newId("command"), false)).toBeUndefined();
    });

    test("end although a background child holds their output open", async () => {
      const own = await lab.create();
      expect((await lab.run(own, "sleep 100 & echo started")).stdout).toBe("started\n");
      await own.walls.stop(0);
    });

    test("that run and have written much are told from those that have written little", async () => {
      const own = await lab.create();
      const { pause } = lab.driver.capabilities;
      await lab.run(own, "echo little > little; sleep 100 > /dev/null 2>&1 & echo started");
      expect(own.walls.hasMuchUnwritten(), "little").toBe(false);
      // The disk may have it a moment later, so it is written again and again until it was seen.
      const writing = await own.walls.commands.exec(lab.request("while :; do head -c 16M /dev/zero > much; done"));
      // Where nothing stands still for a snapshot, it is no question.
      await vi.waitFor(() => expect(own.walls.hasMuchUnwritten(), "much").toBe(pause), { interval: 1 });
      writing.signal(9);
      await writing.exit;
      await own.walls.stop(0);
    });
  });

  describe("logs", () => {
    test("hold a command's output and its end", async () => {
      const request = lab.request("echo one; echo two >&2; exit 5");
      await hear(await box.walls.commands.exec(request));
      const log = await lab.driver.logs.read(box.id, request.id);
      expect(log.chunks.map((chunk) => (chunk.stream === "gap" ? "" : `${chunk.stream} ${chunk.data.toString()}`)).toSorted()).toEqual([
        "stderr two\n",
        "stdout one\n",
      ]);
      expect(log).toMatchObject({ offset: 0, exit: { code: 5, outputBytes: 8, droppedBytes: 0 } });
      expect(await lab.driver.logs.read(box.id, newId("command"))).toEqual({ chunks: [], offset: 0, exit: null });
    });

    test("keep the newest part of an output that is larger than they are", async () => {
      const request = lab.request(`head -c ${LIMITS.commandLogBytes * 2} /dev/zero; echo the end`);
      const running = await box.walls.commands.exec(request);
      let heard = 0;
      for await (const chunk of running.output) heard += chunk.stream === "gap" ? 0 : chunk.data.length;
      expect(heard).toBe(LIMITS.commandLogBytes * 2 + 8);
      const log = await lab.driver.logs.read(box.id, request.id);
      const kept = textOf(log);
      expect(kept.length).toBeLessThanOrEqual(LIMITS.commandLogBytes);
      expect(log.offset + kept.length).toBe(heard);
      expect(log.exit?.droppedBytes).toBe(log.offset);
      expect(kept.endsWith("the end\n")).toBe(true);
    });

    test("are trimmed oldest first, but never those of commands that run", async () => {
      const own = await lab.create();
      const requests = ["1", "2", "3"].map(() => lab.request("head -c 100000 /dev/zero | tr '\\0' x"));
      for (const request of requests) await hear(await own.walls.commands.exec(request));
      const [first, second, third] = requests.map(({ id }) => id);
      const left = await lab.driver.logs.trim(own.id, new Set([first ?? ""]), 250_000);
      expect(left).toBeLessThanOrEqual(250_000);
      const lengths = [first, second, third].map(async (id) => textOf(await lab.driver.logs.read(own.id, id ?? "")).length);
      expect(await Promise.all(lengths)).toEqual([100_000, 0, 100_000]);
      await own.walls.stop(0);
    });
  });
}
