/** What stands above a port knows what the port says, and not which of the ways behind it is in use. */
import { describe, expect, test } from "vitest";
import { DriverName } from "../../src/base/schema/sandbox.ts";
import { findLines, projectFiles } from "./files.ts";

const source = projectFiles(/^src\/.*\.ts$/).filter(({ path }) => !path.endsWith(".test.ts"));
const aboveDrivers = source.filter(({ path }) => !path.startsWith("src/machine/drivers/"));

/** The names themselves, as literals. */
const NAME = `["'\`](${DriverName.options.join("|")})["'\`]`;
const EQUALS = "\\s*[=!]==?\\s*";

// A comparison is true for one driver and forgets the next; a capability is asked of every driver by the compiler.
const BY_NAME = [
  new RegExp(`\\b[dD]river(\\??\\.name)?${EQUALS}${NAME}`),
  new RegExp(`${NAME}${EQUALS}[\\w.?#]*\\b[dD]river\\b`),
  new RegExp(`\\bdriver\\??\\.name${EQUALS}|${EQUALS}[\\w.?#]*\\bdriver\\??\\.name\\b`),
  new RegExp(`\\bbackends\\??\\.\\w+\\(\\s*${NAME}`),
];
// What a driver keeps to find a sandbox again is a process id for one, and a container or a pod for another.
const INTO_LAUNCHED = /\blaunched(\?\.|!\.|\.\w|\[)|\}\s*(:\s*\w+\s*)?=\s*[\w.?#]*\blaunched\b/;
// A sandbox may have no process on this machine, and a number may belong to another process by now.
const HOST_PROCESS = /\bisRunning\(|\bprocessExists\(|base\/host\/process-group\.ts/;

describe("rooms outside the drivers", () => {
  test("ask for a driver's capabilities and never compare its name", () => {
    expect(BY_NAME.flatMap((pattern) => findLines(aboveDrivers, pattern))).toEqual([]);
  });

  test("never look into what a driver keeps to find a sandbox again", () => {
    expect(findLines(aboveDrivers, INTO_LAUNCHED)).toEqual([]);
  });

  test("ask a sandbox's walls whether it lives, not the host for a process", () => {
    // The command line asks for the server's own process.
    const others = aboveDrivers.filter(({ path }) => !path.startsWith("src/base/host/") && !path.startsWith("src/interfaces/cli/"));
    expect(findLines(others, HOST_PROCESS)).toEqual([]);
  });

  test.each([
    'if (row.driver === "native") return;',
    'if (driver.name !== "folder") return;',
    'if ("native" === live.driver.name) return;',
    "if (row?.driver === backend.driver.name) return;",
    'if (parts.backends.has("native")) return;',
    "isRunning(live.walls.launched.pid)",
    "const { pid, start } = live.walls.launched;",
    "processId: row.launched?.pid || null,",
  ])("would be found with: %s", (line) => {
    const wrong = [{ path: "wrong.ts", text: line, lines: [line] }];
    expect([...BY_NAME, INTO_LAUNCHED, HOST_PROCESS].flatMap((pattern) => findLines(wrong, pattern))).not.toEqual([]);
  });
});
