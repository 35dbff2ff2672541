/** The packed SDK in other runtimes than Node, as docs/SDK.md says. They come from npm, so it is not in the ordinary tests. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHECKOUT } from "../support/compiled.ts";
import { MAIN_JOB, WEB_SERVER, WHOLE_WIDTH } from "../support/sdk-programs.ts";
import { SdkUser } from "../support/sdk-package.ts";
import { freePort } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const call = promisify(execFile);
const LONG_MS = 300_000;
const RUNTIMES = { bun: { version: "1.4.4", words: [] }, deno: { version: "2.9.6", words: ["run", "-A"] } } as const;
type Runtime = keyof typeof RUNTIMES;

/** From npm into the checkout's cache, once; undefined where it can't be fetched. */
function fetched(name: Runtime): string | undefined {
  const folder = join(CHECKOUT, ".cache", "runtimes", `${name}-${RUNTIMES[name].version}`);
  const program = join(folder, "node_modules", ".bin", name);
  if (spawnSync(program, ["--version"]).status === 0) return program;
  mkdirSync(folder, { recursive: true });
  const words = ["install", "--prefix", folder, "--no-save", "--prefer-offline", "--no-audit", "--no-fund"];
  spawnSync("npm", [...words, `${name}@${RUNTIMES[name].version}`], { cwd: folder });
  return spawnSync(program, ["--version"]).status === 0 ? program : undefined;
}

describe("the SDK in another runtime (API-1)", needs("root", "compiler"), () => {
  let place: string;
  let user: SdkUser;
  let project: string;
  let env: NodeJS.ProcessEnv;
  let address: readonly string[];
  const viv = (...words: string[]): string =>
    execFileSync(join(user.folder, "node_modules", ".bin", "viv"), words, { env, encoding: "utf8", cwd: project });

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-sdk-runtimes-"));
    const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", place], { cwd: CHECKOUT, encoding: "utf8" });
    user = new SdkUser(join(place, "user"), join(place, packed.trim().split("\n").at(-1) ?? ""));
    for (const [name, { program }] of Object.entries({ main: MAIN_JOB, wide: WHOLE_WIDTH }))
      writeFileSync(join(user.folder, `${name}.mjs`), program);
    project = join(place, "project");
    mkdirSync(project);
    for (const [name, text] of Object.entries({ "hello.txt": "hello\n", "vivarium.json": "{}\n", "serve.cjs": WEB_SERVER }))
      writeFileSync(join(project, name), text);
    env = { PATH: process.env["PATH"], HOME: place, VIV_HOME: join(place, "state") };
  }, LONG_MS);
  afterAll(() => {
    viv("prune", "--all");
    viv("down");
    rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  for (const name of Object.keys(RUNTIMES) as Runtime[]) {
    const run = async (context: { skip: (reason: string) => never }, file: string, words: readonly string[] = []): Promise<unknown> => {
      const program = fetched(name) ?? context.skip(`${name} can't be fetched`);
      const all = [...RUNTIMES[name].words, join(user.folder, file), ...words];
      const { stdout } = await call(program, all, { cwd: project, env, timeout: LONG_MS });
      return JSON.parse(stdout);
    };

    test(`does the main job in ${name}, and starts the server that it needs`, { timeout: LONG_MS }, async (context) => {
      expect(await run(context, "main.mjs")).toEqual(MAIN_JOB.answer);
      viv("down");
    });

    test(
      `has streams, signals, copies, ports and events in ${name}, over the socket and over TCP`,
      { timeout: LONG_MS },
      async (context) => {
        const port = await freePort();
        viv("up", "--listen", String(port));
        address = [`http://127.0.0.1:${port}`, readFileSync(join(place, "state", "token"), "utf8").trim()];
        expect(await run(context, "wide.mjs", address)).toEqual(WHOLE_WIDTH.answer);
        viv("down");
      },
    );
  }
});
