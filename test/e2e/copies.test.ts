/** `viv cp` of files that are large enough for the front to move their bytes itself. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const CONTENT = randomBytes(6 * 1024 ** 2);

describe("a copy of a large file", needs("root", "compiler"), () => {
  let server: TestServer;
  let large: string;

  beforeAll(async () => {
    server = await TestServer.start();
    await server.create({ name: "try" });
    large = join(server.place, "large");
    writeFileSync(large, CONTENT);
    chmodSync(large, 0o640);
  });

  afterAll(async () => server.remove());

  const inside = (...command: string[]): string => viv(server, ["exec", "try", "--", ...command]).out;

  test("has its bytes and its mode inside, and takes the place of what is there, whose owner stays", () => {
    inside("sh", "-c", "echo old >/tmp/in; chown nobody /tmp/in");
    expect(viv(server, ["cp", large, "try:/tmp/in"])).toMatchObject({ code: 0, err: "" });
    expect(inside("stat", "-c", "%s %a %U", "/tmp/in")).toBe(`${CONTENT.length} 640 nobody\n`);
    expect(inside("sha1sum", "/tmp/in").slice(0, 40)).toBe(execFileSync("sha1sum", [large], { encoding: "utf8" }).slice(0, 40));
    expect(inside("sh", "-c", "ls -A /tmp | grep -c ^.viv-")).toBe("0\n");
  });

  test("has its bytes, its mode and its time outside, and leaves nothing beside it", () => {
    viv(server, ["cp", large, "try:/tmp/out"]);
    inside("sh", "-c", "chmod 4755 /tmp/out; touch -d '2001-02-03 04:05:06 UTC' /tmp/out");
    const target = join(server.place, "out");
    writeFileSync(target, "longer than nothing");
    utimesSync(target, 1, 1);
    const report = JSON.parse(viv(server, ["cp", "--json", "try:/tmp/out", target]).out) as unknown;
    expect(report).toMatchObject({ files: 1, bytes: CONTENT.length, skipped: [] });
    expect(readFileSync(target).equals(CONTENT)).toBe(true);
    expect(statSync(target).mode & 0o7777).toBe(0o755);
    expect(statSync(target).mtime.toISOString()).toBe("2001-02-03T04:05:06.000Z");
    expect(readdirSync(server.place).filter((name) => name.startsWith(".viv-"))).toEqual([]);
  });

  test("is made with the rights of the user inside, and refused in the words of any other copy", () => {
    inside(
      "sh",
      "-c",
      "mkdir -m 700 /tmp/roots; head -c 6M /dev/zero >/tmp/roots/file; head -c 6M /dev/zero >/tmp/secret; chmod 600 /tmp/secret",
    );
    const target = join(server.place, "refused");
    const small = join(server.place, "small");
    writeFileSync(small, "small");
    const cases = [
      (from: string) => ["cp", "-u", "nobody", from, "try:/tmp/roots/new"],
      (from: string) => ["cp", from, "try:/not/there/new"],
      (from: string) => ["cp", "-u", "no-such-user", from, "try:/tmp/new"],
      (from: string) => ["cp", from, "no-such-sandbox:/tmp/new"],
    ];
    for (const words of cases) {
      const refused = viv(server, words(large));
      expect(refused.code).toBeGreaterThan(0);
      expect(refused).toEqual(viv(server, words(small)));
    }
    expect(viv(server, ["cp", "-u", "nobody", "try:/tmp/secret", target]).err).toMatch(/secret.*denied/i);
    expect(existsSync(target)).toBe(false);
  });

  test("is recorded once", async () => {
    viv(server, ["cp", large, "try:/tmp/counted"]);
    viv(server, ["cp", "try:/tmp/counted", join(server.place, "counted")]);
    const said = viv(server, ["audit", "try"])
      .out.split("\n")
      .filter((line) => line.includes("/tmp/counted"));
    expect(new Set(said.map((line) => /file\.\w+/.exec(line)?.[0]))).toEqual(new Set(["file.read", "file.write"]));
    expect(said).toHaveLength(2);
  });
});
