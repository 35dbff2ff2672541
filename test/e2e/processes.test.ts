/** Processes inside, as the API and `viv ps --processes` list them. What processes say of themselves is hostile. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Process } from "../../src/base/schema/process.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** Names itself with a line end, an escape sequence and words of /proc, and has arguments of the same kind. */
const HOSTILE = "import time; open('/proc/self/comm', 'w').write('a) R 1\\nNSpid:\\t7'); time.sleep(1000)";

describe("processes of a sandbox", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start();
  });

  afterAll(async () => server.remove());

  const list = async (sandbox: string): Promise<Process[]> => (await server.client.call("listProcesses", { sandbox })).processes;
  const until = (sandbox: string, isRight: (found: Process[]) => boolean): Promise<Process[]> => eventually(() => list(sandbox), isRight);

  test("a process that a command left behind is listed, and one of another sandbox or of reality is not", async () => {
    await server.create({ name: "one" });
    await server.create({ name: "two" });
    expect(await list("one")).toEqual([]);
    await server.sh("one", "sleep 1111 > /dev/null 2>&1 & sleep 2222 > /dev/null 2>&1 &");
    await server.sh("two", "sleep 3333 > /dev/null 2>&1 &");
    const found = await until("one", ({ length }) => length === 2);
    expect(found.map(({ command }) => command)).toEqual([
      ["sleep", "1111"],
      ["sleep", "2222"],
    ]);
    expect((await server.sh("one", `cat /proc/${found[0]?.pid}/comm`)).stdout).toBe("sleep\n");
    const shown = viv(server, ["ps", "one", "--processes"]);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.out).toMatch(/PID.*COMMAND/);
    expect(shown.out).toContain("sleep 1111");
    expect(shown.out).not.toContain("3333");
    expect(viv(server, ["ps", "one", "--processes", "--all"]).code).toBe(2);
    await server.client.call("pauseSandbox", { sandbox: "one" });
    expect(await list("one")).toHaveLength(2);
    await server.client.call("stopSandbox", { sandbox: "one" });
    await expect(list("one")).rejects.toMatchObject({ code: "not_running" });
  });

  test("names and arguments that a process makes up are text, and change nothing else of the list", async () => {
    const box = await server.create({ name: "hostile" });
    const command = ["python3", "-c", HOSTILE, "\u001b]0;owned\u0007\n1 1 running", "x".repeat(100_000)];
    await server.client.call("runCommand", { sandbox: box.id, command, background: true });
    const [found] = await until(box.id, (all) => all[0]?.name.startsWith("a)") === true);
    expect(found).toMatchObject({ parent: 1, state: "sleeping", threads: 1, name: expect.stringMatching(/^a\) R 1/) as string });
    expect(found?.pid).not.toBe(7);
    expect(found?.command.slice(0, 4)).toEqual(command.slice(0, 4));
    expect(found?.command.join("").length).toBeLessThan(4_200);
    const shown = viv(server, ["ps", "-p", "hostile"]);
    expect(shown.out).not.toContain("\u001b");
    expect(shown.out.trimEnd().split("\n")).toHaveLength(2);
  });
});
