/** What a start of the command line loads: each built-in module costs every command some milliseconds. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { COMMAND_LINE } from "../support/compiled.ts";

/** Of TLS and what it needs, which only a terminal in a sandbox may want. */
const HEAVY = ["tls", "https", "crypto", "zlib"];

test("the command line loads no more of Node than a request to the server takes", () => {
  const script = `await import(${JSON.stringify(COMMAND_LINE)}); console.log(process.moduleLoadList.join("\\n"))`;
  const loaded = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).split("\n");
  expect(loaded).toContain("NativeModule http");
  expect(HEAVY.filter((name) => loaded.includes(`NativeModule ${name}`))).toEqual([]);
});
