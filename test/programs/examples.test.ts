/** Every worked example runs to its end, and what it promises comes of it. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PROGRAM, USER_CACHE } from "../support/compiled.ts";
import { needs } from "../support/skip.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  "three-way-bug-fix": ["(patch) won", "judged with the original ones", "Now: tests pass.", "is undone", "Now: tests fail."],
  "dependency-upgrade": ["(minor) won", "promoted into", "its tests pass"],
  "overnight-upgrade": ["propose: It is tried", "waiting", "Nothing has changed in the project yet.", "Waits for you (1)"],
  "config-experiment": ["(middle) won", "it measures best", '"bucket": 100 '],
  "destructive-testing": ["D  important.txt", "the only copy", "The clone is whole again"],
  "untrusted-script": ["Its loot is empty", "Only bin/ was taken out"],
};

/** Needs a real agent: `test/agents/example.test.ts` runs it. */
const WITH_AGENT = "first-agent-task";

describe("the examples", needs("root", "open-checkout"), () => {
  let place: string;
  let env: NodeJS.ProcessEnv;

  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), "viv-examples-"));
    const config = join(place, "config.json");
    writeFileSync(config, "{}");
    const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`;
    env = { ...process.env, PATH: path, VIV: PROGRAM, XDG_CACHE_HOME: USER_CACHE, VIV_HOME: join(place, "state"), VIV_CONFIG: config };
  });
  afterAll(async () => {
    const call = promisify(execFile);
    await call(PROGRAM, ["prune", "--all"], { env });
    await call(PROGRAM, ["down"], { env });
    rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  });

  test("are all listed here", () => {
    const folders = readdirSync(join(root, "examples"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).toSorted()).toEqual([...Object.keys(EXAMPLES), WITH_AGENT].toSorted());
  });

  for (const [name, promises] of Object.entries(EXAMPLES)) {
    test(`${name} ends as its README says`, { timeout: 180_000 }, async () => {
      const { stdout, stderr } = await promisify(execFile)("bash", [join(root, "examples", name, "run.sh")], { env, cwd: place });
      for (const promise of promises) expect(`${stdout}${stderr}`).toContain(promise);
    });
  }
});
