import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Fields, FrameDecoder, KIND } from "../../src/base/host/frames.ts";
import { CellClient } from "../../src/machine/drivers/native/cell-client.ts";
import { request } from "../../src/machine/drivers/native/cell-connection.ts";
import { readLog } from "../../src/machine/drivers/log-reader.ts";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

/** The frames that a socket brings, each with when it came. */
class Heard {
  readonly frames: { readonly kind: number; readonly fields: Fields | undefined; readonly at: number }[] = [];
  readonly socket: Socket;
  readonly #decoder = new FrameDecoder();

  constructor(path: string) {
    this.socket = connect({ path, allowHalfOpen: true });
    this.socket.on("data", (chunk: Buffer) => {
      for (const { kind, payload } of this.#decoder.push(chunk))
        this.frames.push({ kind, fields: kind === KIND.stdout ? undefined : new Fields(payload), at: performance.now() });
    });
  }

  ask(id: string, line: string): void {
    request(this.socket, "exec", [
      ["exec", id],
      ["arg", "sh"],
      ["arg", "-c"],
      ["arg", line],
      ["log_bytes", "100000"],
      ["brief", "1"],
    ]);
  }
}

describe("a command whose caller waits for its end", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  beforeAll(async () => {
    cell = await new CellProcess().start("cgroup:/dev/null"); // with a group, commands are made by a child that waits for them
  }, 60_000);
  afterAll(async () => {
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  test("is told of whole, and its connection takes the next one", async () => {
    const heard = new Heard(cell.socket);
    for (const [round, id] of ["brief1", "brief2", "brief3"].entries()) {
      heard.ask(id, "exit 4");
      await expect.poll(() => heard.frames.length).toBe(2 * (round + 1));
      const [reply, exit] = heard.frames.slice(2 * round);
      expect([reply?.kind, exit?.kind]).toEqual([KIND.reply, KIND.exit]);
      expect([exit?.fields?.number("code"), exit?.fields?.flag("kept")]).toEqual([4, true]);
    }
    heard.socket.destroy();
  });

  test("leaves no log if it printed nothing and ended at once, and a whole one otherwise", async () => {
    // On a busy machine one may take more than a moment.
    const isUnlogged = async (): Promise<boolean> => {
      const silent = cell.request(["true"], { brief: true });
      expect((await (await cell.client.exec(silent)).exit).code).toBe(0);
      return !existsSync(join(cell.logs, `${silent.id}.log`));
    };
    await expect.poll(isUnlogged, { timeout: 20_000 }).toBe(true);
    const loud = cell.request(["sh", "-c", "echo out; echo err >&2; exit 5"], { brief: true });
    expect((await (await cell.client.exec(loud)).exit).code).toBe(5);
    expect(await readLog(cell.logs, loud.id)).toMatchObject({ exit: { code: 5, outputBytes: 8 } });
    const long = cell.request(["sleep", "0.1"], { brief: true });
    expect((await (await cell.client.exec(long)).exit).code).toBe(0);
    expect(await readLog(cell.logs, long.id)).toMatchObject({ exit: { code: 0, outputBytes: 0 } });
  });

  test("that goes on is told of while it runs, with its output as it comes", async () => {
    const running = await cell.client.exec(cell.request(["sh", "-c", "echo one; read _ < /dev/zero & sleep 60"], { brief: true }));
    const first = await running.output[Symbol.asyncIterator]().next();
    expect(first.value).toMatchObject({ stream: "stdout" });
    running.signal(9);
    expect((await running.exit).signal).toBe(9);
  });

  test("prints as much as it likes", async () => {
    const { stdout, exit } = await cell.collect(["sh", "-c", "seq 1 300000"], { brief: true });
    expect(stdout.length).toBe(exit.outputBytes);
    expect(stdout.endsWith("299999\n300000\n")).toBe(true);
  });

  test("is refused like any other where it can't be run, and the next one runs", async () => {
    await expect(cell.client.exec(cell.request(["no-such-program"], { brief: true }))).rejects.toMatchObject({ code: "command_not_found" });
    expect((await cell.collect(["echo", "after"], { brief: true })).stdout).toBe("after\n");
  });

  test("reaches no other command after its end, over the connection that it left", async () => {
    const client = new CellClient(cell.socket);
    const first = await client.exec(cell.request(["false"], { brief: true }));
    expect((await first.exit).code).toBe(1);
    const second = await client.exec(cell.request(["sh", "-c", "echo begun; sleep 0.3; echo done"], { brief: true }));
    first.signal(9);
    first.resize(10, 10);
    first.endInput();
    first.detach();
    const heard: Buffer[] = [];
    for await (const chunk of second.output) if (chunk.stream === "stdout") heard.push(chunk.data);
    expect([Buffer.concat(heard).toString(), (await second.exit).code]).toEqual(["begun\ndone\n", 0]);
  });

  test("is made anew after many, also several at once", async () => {
    for (let round = 0; round < 60; round += 1) {
      const some = await Promise.all(
        [0, 1, 2, 3, 4, 5].map((code) => cell.collect(["sh", "-c", `echo ${round}; exit ${code}`], { brief: true })),
      );
      expect(some.map(({ exit, stdout }) => [exit.code, stdout])).toEqual([0, 1, 2, 3, 4, 5].map((code) => [code, `${round}\n`]));
    }
  });

  test("is not held up by one that was killed before it began", async () => {
    const doomed = await Promise.allSettled(
      Array.from({ length: 8 }, async () => {
        const asked = cell.request(["sleep", "60"]);
        const running = cell.client.exec(asked);
        await expect.poll(() => cell.client.kill(asked.id, 9)).toBe(true);
        return (await (await running).exit).signal;
      }),
    );
    expect(doomed).toEqual(doomed.map(() => ({ status: "fulfilled", value: 9 })));
    expect((await cell.collect(["echo", "free"], { brief: true })).stdout).toBe("free\n");
  });
});
