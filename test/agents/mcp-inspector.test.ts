/** MCP-1: the protocol's own inspector, on its command line, sees and calls the tools in every era that it knows. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHECKOUT, PROGRAM } from "../support/compiled.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const run = promisify(execFile);
const FOLDER = join(CHECKOUT, ".cache/inspector");
const INSPECTOR = join(FOLDER, "node_modules/.bin/mcp-inspector");
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` };

async function fetchInspector(): Promise<boolean> {
  if (existsSync(INSPECTOR)) return true;
  mkdirSync(FOLDER, { recursive: true });
  const words = ["install", "--no-audit", "--no-fund", "--prefix", FOLDER, "@modelcontextprotocol/inspector@2.12.0"];
  return run("npm", words, { env }).then(
    () => true,
    () => false,
  );
}
const isThere = await fetchInspector();
const fetched = isThere ? needs("root") : { skip: true, meta: { skipReason: "the inspector can't be fetched" } };

describe("the inspector", fetched, () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(async () => server?.remove());

  test.for(["legacy", "auto", "modern"])("MCP-1: lists the tools and calls one (%s)", { timeout: 120_000 }, async (era) => {
    const ask = async (...words: readonly string[]): Promise<string> => {
      const own = ["-e", `VIV_HOME=${server.paths.home}`, "-e", `VIV_CONFIG=${server.paths.config}`, "-e", "VIV_NO_START=1"];
      const { stdout } = await run(INSPECTOR, ["--cli", PROGRAM, "mcp", ...own, "--protocol-era", era, "--format", "json", ...words], {
        env,
      });
      return stdout;
    };
    expect(await ask("--method", "tools/list")).toContain('"execute_task"');
    const answer = await ask("--method", "tools/call", "--tool-name", "list");
    expect(JSON.parse(answer)).toMatchObject({ result: { structuredContent: { projects: [], tasks: [] } } });
  });
});
