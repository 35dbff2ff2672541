/** Installs of agents, with an npm of the test: it writes what a package holds, or fails as npm does. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { AgentInstalls } from "../../src/work/agents/install.ts";
import { KNOWN_AGENTS } from "../../src/base/schema/known-agents.ts";
import { eventually } from "../support/server.ts";

const VERSION = KNOWN_AGENTS["pi"]?.version ?? "";
/** Finds `--prefix FOLDER` among its arguments, and fetches pi. */
const FETCH = `while [ "$1" != --prefix ]; do shift; done
echo "$2" >> "$HOME/calls"
mkdir -p "$2/node_modules/.bin"
printf '#!/bin/sh\\necho pi\\n' > "$2/node_modules/.bin/pi"
chmod +x "$2/node_modules/.bin/pi"`;

describe("an install of an agent", () => {
  let place: string;
  let installs: AgentInstalls;
  const npm = (script: string): void => {
    writeFileSync(join(place, "bin/npm"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(place, "bin/npm"), 0o755);
  };
  const inFolder = (): string[] => readdirSync(join(place, "agents/pi"));

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "viv-installs-"));
    mkdirSync(join(place, "bin"));
    installs = new AgentInstalls({ folder: join(place, "agents"), env: { PATH: `${place}/bin:/usr/bin:/bin`, HOME: place, SECRET: "s" } });
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  test("is found from then on, read-only, and npm runs once for several at a time", async () => {
    npm(FETCH);
    expect(installs.find("pi")).toBeUndefined();
    const [one, other] = await Promise.all([installs.install("pi"), installs.install("pi")]);
    expect(one).toEqual({ name: "pi", version: VERSION, program: join(place, "agents/pi", VERSION, "node_modules/.bin/pi") });
    expect(other).toEqual(one);
    expect(installs.find("pi")).toEqual(one);
    expect(inFolder()).toEqual([VERSION]);
    expect(statSync(one.program).mode & 0o777).toBe(0o555);
    expect(statSync(join(place, "agents/pi", VERSION)).mode & 0o777).toBe(0o555);
    await installs.install("pi");
    expect(readFileSync(join(place, "calls"), "utf8").trim().split("\n")).toHaveLength(1);
  });

  test("by two servers at once leaves one that is whole", async () => {
    npm(`${FETCH}\nsleep 0.3`);
    const second = new AgentInstalls({ folder: join(place, "agents"), env: { PATH: `${place}/bin:/usr/bin:/bin`, HOME: place } });
    const [one, other] = await Promise.all([installs.install("pi"), second.install("pi")]);
    expect(other).toEqual(one);
    expect(inFolder()).toEqual([VERSION]);
  });

  test("that is cut off in the middle is none, and what it left goes with the next one", async () => {
    npm(`${FETCH}\nexec sleep 60`);
    const ending = new AbortController();
    const under = installs.install("pi", ending.signal);
    await eventually(
      () => existsSync(join(place, "calls")),
      (begun) => begun,
    );
    expect(installs.find("pi")).toBeUndefined();
    ending.abort();
    await expect(under).rejects.toThrow(/abort/i);
    expect(inFolder()).toEqual([]);
    // As a server leaves it that is killed.
    const left = join(place, "agents/pi/.installing-000000");
    mkdirSync(left);
    const then = Date.now() / 1000 - (3 * LIMITS.agentInstallTimeoutMs) / 1000;
    utimesSync(left, then, then);
    npm(FETCH);
    await installs.install("pi");
    expect(inFolder()).toEqual([VERSION]);
  });

  test("gives npm what reaches the registry, and nothing else of the environment", async () => {
    npm(`env > "$HOME/env"\n${FETCH}`);
    await installs.install("pi");
    const env = readFileSync(join(place, "env"), "utf8");
    expect(env).toContain(`HOME=${place}`);
    expect(env).not.toContain("SECRET");
  });

  test("runs no script of a package", async () => {
    npm(`echo "$@" > "$HOME/arguments"\n${FETCH}`);
    await installs.install("pi");
    expect(readFileSync(join(place, "arguments"), "utf8")).toContain("--ignore-scripts");
  });

  test("says what was wrong", async () => {
    await expect(new AgentInstalls({ folder: join(place, "agents"), env: { PATH: place } }).install("pi")).rejects.toMatchObject({
      code: "agent_install",
      message: "npm can't be run, which fetches agents.",
    });
    npm("echo 'npm error code ENOTFOUND' >&2; echo 'npm error network request failed' >&2; exit 1");
    await expect(installs.install("pi")).rejects.toThrow(/^npm can't reach its registry.*network request failed/);
    npm("echo 'npm error code E404' >&2; exit 1");
    await expect(installs.install("pi")).rejects.toThrow(/^npm did not install .*@.*: code E404/);
    npm("true");
    await expect(installs.install("pi")).rejects.toThrow(/has no program for this machine/);
    await expect(installs.install("nothing")).rejects.toMatchObject({ code: "agent_missing" });
    expect(inFolder()).toEqual([]);
  });
});
