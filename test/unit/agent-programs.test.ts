/** Where the program of an agent is found. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { npmPrefix } from "../../src/work/agents/npm-prefix.ts";
import { findProgram } from "../../src/work/agents/programs.ts";

describe("the program of an agent", () => {
  let place: string;
  const home = (): string => join(place, "home");
  const program = (path: string): string => {
    const file = join(place, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o755);
    return file;
  };
  const settings = (text: string): void => writeFileSync(join(home(), ".npmrc"), text);
  const find = (path = "/nowhere") => findProgram("agent", { installed: undefined, path, home: home(), project: undefined });

  beforeEach(() => {
    // Not below /tmp, which sandboxes have one of their own of.
    place = mkdtempSync("/var/tmp/viv-programs-");
    mkdirSync(home());
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  test.each([
    ["its whole path", (at: string) => `prefix=${at}\n`],
    ["a path from the home folder", () => "fund=false\nprefix = ~/own\naudit=false\n"],
    ["a variable and quotes", () => 'prefix="${HOME}/own"\n'],
  ])("is found where npm's settings name its prefix by %s", (_name, text) => {
    const path = program("home/own/bin/agent");
    expect(find()).toBeUndefined();
    settings(text(join(home(), "own")));
    expect(find()).toEqual({ path, from: "npm" });
  });

  test("is found beside the Node that the caller's PATH leads to, where no setting names another prefix", () => {
    program("node-24/bin/node");
    const path = program("node-24/bin/agent");
    mkdirSync(join(place, "links"));
    symlinkSync(join(place, "node-24/bin/node"), join(place, "links/node"));
    expect(find(join(place, "links"))).toEqual({ path, from: "npm" });
    settings(`prefix=${join(place, "elsewhere")}\n`);
    expect(find(join(place, "links"))).toBeUndefined();
  });

  test("is taken from the PATH before npm's prefix", () => {
    settings("prefix=~/own\n");
    program("home/own/bin/agent");
    const path = program("bin/agent");
    expect(find(`relative:${join(place, "bin")}`)).toEqual({ path, from: "path" });
  });

  test("is not looked for below a prefix that can't be known", () => {
    for (const text of ["prefix=${SOMEWHERE}/own\n", "prefix=own\n", `prefix=${"x".repeat(70_000)}\n`]) {
      settings(text);
      expect(npmPrefix({ path: "/nowhere", home: home() })).toBeUndefined();
    }
  });

  test("has the prefix that npm itself says", () => {
    const PATH = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
    settings("prefix=~/own\n");
    const said = execFileSync("npm", ["prefix", "--global"], { env: { PATH, HOME: home() }, cwd: place, encoding: "utf8" });
    expect(npmPrefix({ path: PATH, home: home() })).toBe(said.trim());
  });
});
