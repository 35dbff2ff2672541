/** `viv agents install` with the real npm: the program is fetched, whole and read-only, and starts in a sandbox. */
import { once } from "node:events";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent } from "../../src/base/schema/agent-contracts.ts";
import { KNOWN_AGENTS } from "../../src/base/schema/known-agents.ts";
import { realAgent } from "../support/real-agents.ts";
import { TestServer } from "../support/server.ts";
import { missing, needs } from "../support/skip.ts";
import { startViv } from "../support/viv.ts";

/** The smallest of them. It is skipped for the reason that keeps the others from being fetched. */
const { needed } = await realAgent("gemini");
const PATH = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
/** Where this machine's npm finds its registry, and how that is reached: the server has a home of its own. */
const REACHES = /^(?:npm_config_(?:registry|userconfig|cafile)|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|(?:https?|all|no)_proxy)$/i;
const NPM: Readonly<Record<string, string>> = {
  npm_config_userconfig: join(homedir(), ".npmrc"),
  ...Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && REACHES.test(name) ? [[name, value]] : [])),
  ),
};

describe("viv agents install", missing("root") === undefined ? needed : needs("root"), () => {
  let server: TestServer;
  /** As long as npm needs. */
  async function call(...words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
    const child = startViv(server, words, { cwd: server.project, env: { PATH } });
    child.stdin.end();
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close") as Promise<[number]>]);
    return { code, out, err };
  }
  beforeAll(async () => {
    server = await TestServer.start({ env: { PATH, ...NPM } });
  });
  afterAll(async () => server?.remove());

  test("AGT-1: fetches the pinned version from npm's registry, which then starts in a sandbox", async () => {
    const version = KNOWN_AGENTS["gemini"]?.version ?? "";
    const installed = await call("agents", "install", "gemini");
    expect(installed).toMatchObject({
      code: 0,
      out: expect.stringContaining(`Gemini CLI ${version} is at ${server.paths.home}/agents/gemini/`) as string,
    });
    const { agents } = JSON.parse((await call("agents", "--probe", "--json")).out) as { agents: (Agent & { probe: unknown })[] };
    const gemini = agents.find(({ name }) => name === "gemini");
    expect(gemini).toMatchObject({ from: "installed", version, probe: { works: true, version } });
    expect(statSync(gemini?.program ?? "").mode & 0o222).toBe(0);
  }, 600_000);
});
