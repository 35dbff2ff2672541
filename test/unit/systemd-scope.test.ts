import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { inSystemdScope } from "../../src/interfaces/cli/start.ts";

describe("the scope an ordinary user's server runs in", () => {
  const place = mkdtempSync(join(tmpdir(), "viv-test-"));
  const runtime = join(place, "runtime");
  mkdirSync(join(runtime, "systemd"), { recursive: true });
  writeFileSync(join(runtime, "systemd/private"), "");

  afterAll(() => rmSync(place, { recursive: true }));

  /** A stand-in for systemd-run that says how it was called, or fails. */
  function run(script: string): string {
    const tools = mkdtempSync(join(place, "tools-"));
    writeFileSync(join(tools, "systemd-run"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(tools, "systemd-run"), 0o755);
    const [program, ...args] = inSystemdScope(["/bin/echo", "served", "a b"], { XDG_RUNTIME_DIR: runtime }, 1000);
    return execFileSync(program, args, { env: { PATH: `${tools}:/usr/bin:/bin` }, encoding: "utf8" });
  }

  test("is asked for with delegation, and the server's command goes into it word for word", () => {
    expect(run('[ "$7" = true ] && exit 0; echo "$@"')).toBe("--user --scope --quiet --collect -p Delegate=yes -- /bin/echo served a b\n");
  });

  test("is done without where systemd refuses it", () => {
    expect(run("exit 1")).toBe("served a b\n");
  });

  test("is not asked for by root or without a user's systemd", () => {
    expect(inSystemdScope(["/bin/echo"], { XDG_RUNTIME_DIR: runtime }, 0)).toEqual(["/bin/echo"]);
    expect(inSystemdScope(["/bin/echo"], { XDG_RUNTIME_DIR: place }, 1000)).toEqual(["/bin/echo"]);
    expect(inSystemdScope(["/bin/echo"], {}, 1000)).toEqual(["/bin/echo"]);
  });
});
