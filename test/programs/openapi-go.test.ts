/** A client for Go is made from the OpenAPI description as docs/SDK.md says, and used. It fetches modules, so it is not in the ordinary tests. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CHECKOUT } from "../support/compiled.ts";
import { eventually, freePort, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLACE = join(CHECKOUT, ".cache", "openapi-go");
const PROGRAM = join(PLACE, "bin", "oapi-codegen");
const GENERATOR = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
const MODULE = "module example.com/use\n\ngo 1.24\n\nrequire github.com/oapi-codegen/runtime v1.8.0\n";
const ENV = { ...process.env, GOBIN: join(PLACE, "bin"), GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" };
const LONG_MS = 900_000;
const call = promisify(execFile);

/** Why the generator can't be had; it is built once. */
function generatorMissing(): string | undefined {
  if (spawnSync(PROGRAM, ["--version"]).status === 0) return undefined;
  mkdirSync(PLACE, { recursive: true });
  const installed = spawnSync("go", ["install", GENERATOR], { cwd: PLACE, env: ENV, timeout: LONG_MS });
  return installed.status === 0 ? undefined : "oapi-codegen can't be fetched from the module proxy";
}

function block(language: string): string {
  const page = readFileSync(join(CHECKOUT, "docs", "SDK.md"), "utf8");
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(page)?.[1] ?? "";
}

test(
  "API-1, TASK-2: a Go client is generated, creates a sandbox and runs a job",
  { ...needs("root", "go"), timeout: LONG_MS },
  async (context) => {
    const missing = generatorMissing();
    if (missing !== undefined) return context.skip(missing);
    const port = await freePort();
    const server = await TestServer.start({ flags: ["--listen", String(port)] });
    const url = `http://127.0.0.1:${port}`;
    const use = join(PLACE, "use");
    try {
      rmSync(use, { recursive: true, force: true });
      mkdirSync(join(use, "vivarium"), { recursive: true });
      const description = await eventually(
        () =>
          fetch(`${url}/openapi.json`).then(
            (answer) => answer.text(),
            () => "",
          ),
        (text) => text !== "",
      );
      const token = readFileSync(server.paths.token, "utf8").trim();
      writeFileSync(join(use, "openapi.json"), description);
      writeFileSync(join(use, "main.go"), block("go"));
      writeFileSync(join(use, "go.mod"), MODULE);
      const words = ["-generate", "types,client", "-package", "vivarium", "-o", "vivarium/vivarium.go", "openapi.json"];
      await call(PROGRAM, words, { cwd: use });
      const tidied = spawnSync("go", ["mod", "tidy"], { cwd: use, env: ENV, timeout: LONG_MS });
      if (tidied.status !== 0) return context.skip("modules of the client can't be fetched from the module proxy");
      const { stdout } = await call("go", ["run", ".", url, token, server.project], { cwd: use, env: ENV, timeout: LONG_MS });
      expect(stdout).toBe("hello from Go\nsucceeded 42\n");
    } finally {
      await server.remove();
    }
  },
);
