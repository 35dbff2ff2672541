/** Programs of the host that the helper runs for the server. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isRunning } from "../../src/base/host/processes.ts";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { toolWith, type Tool, type ToolOptions } from "../../src/base/host/tool.ts";
import { GitStore } from "../../src/machine/merge/store.ts";
import { type CellForTests, startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";

describe("a program run by the helper", needs("linux"), () => {
  let cell: CellForTests;
  let tool: Tool;
  beforeAll(() => {
    cell = startCell();
    tool = toolWith(cell.host);
  });
  afterAll(async () => cell?.remove());

  const options = (): ToolOptions => ({
    folder: cell.folder,
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", GREETING: "hello" },
    timeoutMs: 30_000,
    maxOutputBytes: 1024 ** 2,
  });
  const sh = (line: string, more: Partial<ToolOptions> = {}): ReturnType<Tool> => tool("sh", ["-c", line], { ...options(), ...more });

  test("gives its output, its complaints and its exit code, byte for byte", async () => {
    const { code, stdout, stderr } = await sh("printf 'a\\0b\\n'; echo trouble >&2; exit 7");
    expect([code, stdout.toString("latin1"), stderr]).toEqual([7, "a\0b\n", "trouble"]);
  });

  test("has the input, the folder and the variables it is given, and no others", async () => {
    const input = join(cell.folder, "given");
    writeFileSync(input, "line\n");
    const { stdout } = await sh("cat; pwd; env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort", { input, cwd: "/usr" });
    expect(stdout.toString()).toBe("line\n/usr\nGREETING=hello\nPATH=/usr/bin:/bin\n");
    expect((await sh("cat")).stdout.toString()).toBe("");
    // Descriptors of the helper would be ways into it.
    expect((await sh("ls /proc/self/fd | wc -l")).stdout.toString().trim()).toBe("4");
  });

  test("that complains without end is heard to its end", async () => {
    const { code, stderr } = await sh("i=0; while [ $i -lt 20000 ]; do echo complaint $i; i=$((i + 1)); done >&2; exit 3");
    expect(code).toBe(3);
    expect(stderr.endsWith("complaint 19999")).toBe(true);
    expect(stderr.length).toBeLessThanOrEqual(4096);
  });

  test("that takes too long, or writes too much, is ended with all it started", async () => {
    const child = join(cell.folder, "child");
    const { code } = await sh(`sleep 1000 & echo $! >${child}; wait`, { timeoutMs: 300 });
    expect(code).toBeNull();
    await vi.waitUntil(() => !isRunning(Number(readFileSync(child, "utf8"))));
    for (const line of ["cat /dev/zero", "head -c 5000000 /dev/zero"])
      await expect(sh(line, { maxOutputBytes: 1000 })).rejects.toThrow("sh wrote more than 1000 bytes");
    expect((await sh("head -c 1000 /dev/zero", { maxOutputBytes: 1000 })).stdout.length).toBe(1000);
    expect(readdirSync(cell.folder).filter((name) => name.startsWith("output-")).length).toBeLessThanOrEqual(1);
  });

  test("that is not there, or may not be run, is told", async () => {
    await expect(tool("no-such-program", [], options())).rejects.toMatchObject({ code: "unsupported" });
    await expect(tool("/etc/passwd", [], options())).rejects.toMatchObject({ code: "unsupported" });
    await expect(tool("true", [], { ...options(), cwd: join(cell.folder, "absent") })).rejects.toMatchObject({ code: "unsupported" });
  });

  test("ends with its helper", async () => {
    const host = new CellHost({ program: CELL });
    const file = join(cell.folder, "orphan");
    const waiting = toolWith(host)("sh", ["-c", `echo $$ >${file}.new && mv ${file}.new ${file}; exec sleep 1000`], options()).catch(
      (reason: unknown) => reason,
    );
    await vi.waitUntil(() => existsSync(file));
    process.kill(host.pid ?? 0, "SIGKILL");
    expect(await waiting).toMatchObject({ code: "cell_failed" });
    await vi.waitUntil(() => !isRunning(Number(readFileSync(file, "utf8"))));
    await host.close();
  });

  test("reads long lists as fast as a child of the server does", async () => {
    const paths = Array.from({ length: 20_000 }, (_, index) => [
      Buffer.from("folder/file-"),
      Buffer.from(String(index)),
      Buffer.of(10),
    ]).flat();
    const spent = async (runner: Tool | undefined): Promise<number> => {
      const store = await GitStore.open(cell.folder, { tool: runner });
      try {
        const began = performance.now();
        const { stdout } = await store.git(["stripspace"], { input: paths });
        expect(stdout.length).toBe(Buffer.concat(paths).length);
        return performance.now() - began;
      } finally {
        await store.close();
      }
    };
    const [own, helped] = [await spent(undefined), await spent(tool)];
    // A write for every piece took ten times as long.
    expect(helped).toBeLessThan(own * 3 + 100);
  });

  test("makes a store of git the same as a child of the server does", async () => {
    const written = async (runner: Tool | undefined): Promise<unknown> => {
      const store = await GitStore.open(cell.folder, { tool: runner });
      try {
        const blobs = join(store.folder, "blobs");
        writeFileSync(blobs, "blob\nmark :1\ndata 6\nhello\n\n");
        const { trees, contents } = await store.write([{ entries: [{ path: Buffer.from("file"), mode: "100644", content: 1 }] }], blobs);
        const { stdout } = await store.git(["cat-file", "--batch-check"], { input: [Buffer.from(`${contents.get(1) ?? ""}\n`)] });
        await expect(store.git(["cat-file", "blob", "0".repeat(40)])).rejects.toMatchObject({ code: "internal" });
        const { code } = await store.ask(["cat-file", "-e", "0".repeat(40)]);
        return { trees, contents, listed: stdout.toString(), code };
      } finally {
        await store.close();
      }
    };
    expect(await written(tool)).toEqual(await written(undefined));
  });
});
