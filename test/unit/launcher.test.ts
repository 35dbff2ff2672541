/** bin/viv, in a package of its own with a small program behind it. */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const project = join(import.meta.dirname, "..", "..");
/** The pinned Node has the package's own name. */
const pinned = "vivarium";

const program = `
export async function main([verb, ...rest]: string[]): Promise<number> {
  if (verb === "exit") return Number(rest[0]);
  if (verb === "die") process.kill(process.pid, "SIGTERM");
  else if (verb === "wait") {
    process.on("SIGINT", () => process.exit(42));
    setInterval(() => undefined, 1000);
    process.stdout.write("ready");
  } else if (verb === "cat") process.stdin.pipe(process.stdout);
  else process.stdout.write(JSON.stringify({ rest, node: process.execPath, pid: process.pid }));
  return 0;
}
`;

let folder: string;
let viv: string;
let oldNode: readonly string[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "viv launcher "));
  const root = join(folder, "lib", "vivarium");
  cpSync(join(project, "bin"), join(root, "bin"), { recursive: true });
  mkdirSync(join(root, "src", "interfaces", "cli"), { recursive: true });
  writeFileSync(join(root, "src", "interfaces", "cli", "main.ts"), program);
  writeFileSync(join(root, "package.json"), `{ "type": "module" }`);
  mkdirSync(join(root, "node_modules", pinned, "bin"), { recursive: true });
  symlinkSync(process.execPath, join(root, "node_modules", pinned, "bin", "node"));
  mkdirSync(join(folder, "bin"));
  viv = join(folder, "bin", "viv");
  symlinkSync("../lib/vivarium/bin/viv", viv);
  const preload = join(folder, "older.cjs");
  writeFileSync(preload, `Object.defineProperty(process, "version", { value: "v20.1.0" });`);
  oldNode = [process.execPath, "--require", preload];
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Both ways in: as a command, and as a script of a Node that is too old. */
function ways(): readonly (readonly [string, ...string[]])[] {
  return [[viv], [process.execPath, ...oldNode.slice(1), viv]];
}

describe("bin/viv", () => {
  test("passes arguments on unchanged and runs on the pinned Node", () => {
    for (const [command, ...before] of ways()) {
      const { stdout } = spawnSync(command, [...before, "show", "a b", "", "--", "$x"], { encoding: "utf8" });
      expect(JSON.parse(stdout)).toMatchObject({ rest: ["a b", "", "--", "$x"], node: process.execPath });
    }
  });

  test("keeps its process number when it changes to the pinned Node", async () => {
    const child = spawn(viv, ["show"], { stdio: ["ignore", "pipe", "inherit"] });
    const [output] = (await once(child.stdout, "data")) as [Buffer];
    expect(JSON.parse(output.toString())).toMatchObject({ pid: child.pid });
  });

  test("returns the program's exit code, or dies of its signal", () => {
    for (const [command, ...before] of ways()) {
      expect(spawnSync(command, [...before, "exit", "3"]).status).toBe(3);
      expect(spawnSync(command, [...before, "die"]).signal).toBe("SIGTERM");
    }
  });

  test("passes standard input through", () => {
    const input = Buffer.alloc(300_000, "bytes \0\xff");
    for (const [command, ...before] of ways()) expect(spawnSync(command, [...before, "cat"], { input }).stdout.equals(input)).toBe(true);
  });

  test("passes an interrupt on", async () => {
    for (const [command, ...before] of ways()) {
      const child = spawn(command, [...before, "wait"], { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      child.kill("SIGINT");
      expect(await once(child, "exit")).toEqual([42, null]);
    }
  });

  test("needs no Node on the path", () => {
    const { stdout } = spawnSync(viv, ["show"], { encoding: "utf8", env: { PATH: toolsWithoutNode() } });
    expect(JSON.parse(stdout)).toMatchObject({ node: process.execPath });
  });

  test("passes a pinned Node over that does not run here, and asks one that does only until it has run", () => {
    const other = join(folder, "other");
    const node = join(other, "node_modules", pinned, "bin", "node");
    const log = join(other, "asked");
    const env = { PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`, XDG_CACHE_HOME: join(other, "cache") };
    cpSync(join(folder, "lib", "vivarium"), other, { recursive: true });
    const start = (script: string): unknown => {
      rmSync(node);
      writeFileSync(node, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      const { stdout } = spawnSync(join(other, "bin", "viv"), ["show"], { encoding: "utf8", env });
      return JSON.parse(stdout).node;
    };
    expect(start("exit 127")).toBe(process.execPath);
    const runs = `[ "$1" = --version ] && echo asked >>'${log}'; exec '${process.execPath}' "$@"`;
    for (let time = 0; time < 4; time += 1) expect(start(runs)).toBe(process.execPath);
    // The first time there is no place to write it down.
    expect(readFileSync(log, "utf8").split("\n").filter(Boolean).length).toBeLessThanOrEqual(2);
    writeFileSync(join(other, "cache", "vivarium", readMark(join(other, "cache", "vivarium"))), "another machine\n");
    expect(start("exit 127")).toBe(process.execPath);
  });

  test("fetches the pinned Node once where a Node that is too old is all there is, and takes none but the tested one", () => {
    const own = join(folder, "fetching");
    cpSync(join(folder, "lib", "vivarium"), own, { recursive: true });
    rmSync(join(own, "node_modules", pinned), { recursive: true });
    // An npm that has one Node to hand out.
    const archive = join(folder, "archive.tgz");
    mkdirSync(join(folder, "made", "package", "bin"), { recursive: true });
    symlinkSync(process.execPath, join(folder, "made", "package", "bin", "node"));
    spawnSync("tar", ["-czf", archive, "-C", join(folder, "made"), "package"]);
    const tools = join(folder, "npm");
    mkdirSync(tools);
    writeFileSync(join(tools, "npm"), `#!/bin/sh\necho "$*" >>'${tools}/asked'\ncp '${archive}' node-linux-${process.arch}-1.2.3.tgz\n`, {
      mode: 0o755,
    });
    const start = (integrity: string) => {
      writeFileSync(
        join(own, "package.json"),
        JSON.stringify({ type: "module", pinnedNode: { version: "1.2.3", integrity: { [process.arch]: integrity } } }),
      );
      const [command = "", ...before] = oldNode;
      const env = { PATH: `${tools}:${process.env["PATH"] ?? ""}`, XDG_CACHE_HOME: join(own, "cache") };
      return spawnSync(command, [...before, join(own, "bin", "viv"), "show"], { encoding: "utf8", env });
    };
    expect(start("sha512-another")).toMatchObject({ status: 125, stderr: expect.stringContaining("is not the one that was tested") });
    const right = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    const first = start(right);
    expect(first.stderr).toBe("viv: Node v20.1.0 is older than 22.18: fetching Node 1.2.3, once.\n");
    expect(JSON.parse(first.stdout)).toMatchObject({ node: process.execPath });
    expect(start(right)).toMatchObject({ status: 0, stderr: "" });
    const line = `pack --silent --ignore-scripts node-linux-${process.arch}@1.2.3\n`;
    expect(readFileSync(join(tools, "asked"), "utf8")).toBe(line + line);
    expect(readdirSync(join(own, "cache", "vivarium")).filter((name) => name.startsWith("node-"))).toEqual(["node-1.2.3"]);
  });

  test("says in one sentence that Node is too old where the pinned one does not run", () => {
    const bare = join(folder, "bare");
    cpSync(join(project, "bin"), join(bare, "bin"), { recursive: true });
    const [command = "", ...before] = oldNode;
    const { status, stderr } = spawnSync(command, [...before, join(bare, "bin", "viv")], { encoding: "utf8" });
    expect(status).toBe(125);
    expect(stderr).toBe("viv: Node v20.1.0 is too old; install Node 22.18 or newer.\n");
  });
});

function readMark(cache: string): string {
  const mark = readdirSync(cache).find((name) => name.startsWith("runs-"));
  if (mark === undefined) throw new Error("nothing was written down");
  return mark;
}

function toolsWithoutNode(): string {
  const tools = join(folder, "tools");
  mkdirSync(tools, { recursive: true });
  const { stdout } = spawnSync("sh", ["-c", "command -v readlink"], { encoding: "utf8" });
  symlinkSync(stdout.trim(), join(tools, "readlink"));
  return tools;
}
