/** The published package: packed, installed as a user would, and run where there is neither a compiler nor a Node. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";

const project = join(import.meta.dirname, "..", "..");

describe("the package", needs("linux", "compiler"), () => {
  let folder: string;
  let installed: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "viv-package-"));
    const prefix = join(folder, "prefix");
    const output = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: project, encoding: "utf8" });
    const archive = join(folder, output.trim().split("\n").at(-1) ?? "");
    execFileSync("npm", ["install", "--global", "--prefix", prefix, "--prefer-offline", "--loglevel=error", archive], { cwd: folder });
    installed = join(prefix, "lib", "node_modules", "vivarium");
  }, 180_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A PATH with what sh needs to follow links, and nothing else. */
  function barePath(): string {
    const tools = join(folder, "tools");
    mkdirSync(tools, { recursive: true });
    const readlink = execFileSync("sh", ["-c", "command -v readlink"], { encoding: "utf8" }).trim();
    symlinkSync(readlink, join(tools, "readlink"));
    return tools;
  }

  test("gives a viv that runs without a compiler and without a Node of the machine's", () => {
    const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string };
    const env = { PATH: barePath(), HOME: folder };
    const output = execFileSync(join(folder, "prefix", "bin", "viv"), ["--version"], { encoding: "utf8", env });
    expect(output).toContain(version);
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

  test("installs nothing but itself and its Node, and carries the terms of what is in it", () => {
    expect(readdirSync(join(installed, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([`node-linux-${process.arch}`]);
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
