import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv, type Answer } from "../support/viv.ts";

/** How often each command is run. The watcher of the disk quota measures, too, every few seconds. */
const TIMES = 6;

/** On plain storage, to measure a volume is to walk it, which `du` does. Here it leaves a line for each walk. */
describe("a sandbox on plain storage", needs("root"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-du-"));
  const walks = join(place, "walks");
  let server: TestServer;

  beforeAll(async () => {
    const program = spawnSync("sh", ["-c", "command -v du"], { encoding: "utf8" }).stdout.trim();
    const [real, counting] = [join(place, "real"), join(place, "counting")];
    copyFileSync(program, real);
    writeFileSync(counting, `#!/bin/sh\necho walk >> ${walks}\nexec ${real} "$@"\n`);
    for (const file of [real, counting]) chmodSync(file, 0o755);
    const through = ["unshare", "--mount", "--", "sh", "-c", `mount --bind ${counting} ${program} && exec "$@"`, "sh"];
    server = await TestServer.start({ config: { storage: "plain", spares: false }, through });
    run(["create", "--name", "try"]);
    run(["exec", "-d", "try", "--", "sleep", "600"]);
  });

  afterAll(async () => {
    await server.remove();
    rmSync(place, { recursive: true, force: true });
  });

  const run = (words: readonly string[]): Answer => viv(server, words, { cwd: server.project });
  const count = (): number => (existsSync(walks) ? readFileSync(walks, "utf8").split("\n").length - 1 : 0);

  function walksOf(words: readonly string[]): number {
    const before = count();
    for (let time = 0; time < TIMES; time += 1) expect(run(words)).toMatchObject({ code: 0 });
    return count() - before;
  }

  test("is walked by inspect, which tells its size", () => {
    expect(walksOf(["inspect", "try"])).toBeGreaterThanOrEqual(TIMES);
  });

  test.each([
    ["exec", ["exec", "try", "--", "true"]],
    ["exec -d", ["exec", "-d", "try", "--", "true"]],
    ["shell", ["shell", "try"]],
    ["ls", ["ls"]],
    ["ps", ["ps", "try"]],
    ["logs", ["logs", "try"]],
    ["cp", ["cp", "try:hello.txt", join(place, "copied")]],
    ["limits", ["limits", "try"]],
  ])("is found by %s without a walk", (_, words) => {
    expect(walksOf(words)).toBeLessThan(TIMES);
  });

  test("is found by port without a walk", async () => {
    const before = count();
    for (let time = 0; time < TIMES; time += 1) {
      const port = startViv(server, ["port", "try", "3000", "0"], { cwd: server.project });
      await once(port.stdout, "data");
      port.kill("SIGINT");
      await once(port, "close");
    }
    expect(count() - before).toBeLessThan(TIMES);
  });
});
