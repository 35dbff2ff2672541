/** A client for Python is made from the OpenAPI description as docs/SDK.md says, and used. It installs packages, so it is not in the ordinary tests. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CHECKOUT } from "../support/compiled.ts";
import { freePort, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLACE = join(CHECKOUT, ".cache", "openapi-python");
const PROGRAM = join(PLACE, "bin", "openapi-python-client");
const call = promisify(execFile);

/** Why the generator can't be had; it is installed once. */
function generatorMissing(): string | undefined {
  if (spawnSync(PROGRAM, ["--version"]).status === 0) return undefined;
  mkdirSync(PLACE, { recursive: true });
  if (spawnSync("python3", ["-m", "venv", PLACE]).status !== 0) return "python3 makes no virtual environment";
  const installed = spawnSync(join(PLACE, "bin", "pip"), ["install", "--quiet", "openapi-python-client==0.29.1", "ruff"]);
  return installed.status === 0 ? undefined : "openapi-python-client can't be fetched from the package index";
}

function block(language: string): string {
  const page = readFileSync(join(CHECKOUT, "docs", "SDK.md"), "utf8");
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(page)?.[1] ?? "";
}

test("API-1: a Python client is generated without a complaint, and runs a command in a sandbox", needs("root", "pip"), async (context) => {
  const missing = generatorMissing();
  if (missing !== undefined) return context.skip(missing);
  const port = await freePort();
  const server = await TestServer.start({ flags: ["--listen", String(port)] });
  const url = `http://127.0.0.1:${port}`;
  const made = join(PLACE, "vivarium_client");
  try {
    rmSync(made, { recursive: true, force: true });
    writeFileSync(join(PLACE, "config.yml"), block("yaml"));
    const env = { ...process.env, PATH: `${join(PLACE, "bin")}:${process.env["PATH"] ?? ""}` };
    const words = ["generate", "--url", `${url}/openapi.json`, "--config", "config.yml", "--meta", "none", "--output-path", made];
    const { stdout, stderr } = await call(PROGRAM, words, { cwd: PLACE, env });
    expect(`${stdout}${stderr}`).not.toMatch(/WARNING|Unable to process/);
    writeFileSync(join(PLACE, "use.py"), block("python"));
    const token = readFileSync(server.paths.token, "utf8").trim();
    const { stdout: printed } = await call(join(PLACE, "bin", "python"), ["use.py", url, token, server.project], { cwd: PLACE, env });
    expect(printed).toBe("hello from Python 3\n");
  } finally {
    await server.remove();
  }
});
