/** CLONE-6: a refresh at the command line, of an ordinary user, without walls, and of many files. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** An id that belongs to no account. */
const UID = 64_124;
const FILES = { "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n", "folder/d.txt": "1\n" };

/** A sandbox changes two files; reality changes one of them and more. */
async function bothMove(server: TestServer, box: string): Promise<void> {
  await server.sh(box, "echo inside > a.txt; echo inside > b.txt");
  writeFileSync(join(server.project, "b.txt"), "outside\n");
  writeFileSync(join(server.project, "c.txt"), "outside\n");
  rmSync(join(server.project, "folder"), { recursive: true });
  symlinkSync("c.txt", join(server.project, "link"));
}

const SEEN = "cat a.txt c.txt b.txt; readlink link; ls";
const EXPECTED = "inside\noutside\n<<<<<<< sandbox\ninside\n=======\noutside\n>>>>>>> reality\nc.txt\na.txt\nb.txt\nc.txt\nlink\n";

describe("CLONE-6 viv refresh", needs("root"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false }, files: FILES });
  });
  afterAll(async () => server?.remove());

  test("says what came, what is left to settle and how to go back, and ends with 1 if there is something left", async () => {
    const box = await server.create({ name: "try" });
    expect(viv(server, ["refresh", "try"])).toMatchObject({ code: 0, out: "The project has not changed: try is up to date.\n" });
    await bothMove(server, box.id);
    const { code, out } = viv(server, ["refresh", "try"]);
    expect(code).toBe(1);
    expect(out).toMatch(/^M {2}b\.txt\nM {2}c\.txt\nD {2}folder\/d\.txt\nA {2}link\ntry is up to date: 4 paths brought in\.\n/);
    expect(out).toMatch(
      /`viv rollback try snp\w+` brings it back\.\n1 conflict left to settle inside:\n {2}b\.txt \(content\): Both changed/,
    );
    expect((await server.sh(box.id, SEEN)).stdout).toBe(EXPECTED);
    const again = viv(server, ["refresh", "try", "--json"]);
    expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { name: "try", snapshot: null, files: 0, conflicts: [] }]);
    await server.client.call("pauseSandbox", { sandbox: box.id });
    expect(viv(server, ["refresh", "try"])).toMatchObject({ code: 3, err: expect.stringContaining("viv resume try") as string });
    await server.client.call("resumeSandbox", { sandbox: box.id });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("what comes belongs to whom its place belongs, whatever the sandbox's user is", async () => {
    const place = join(server.project, "theirs");
    mkdirSync(place);
    chownSync(place, UID, UID);
    const box = await server.create({ user: "nobody" });
    for (const name of ["new.txt", "other.txt"]) writeFileSync(join(place, name), "new\n");
    await server.client.call("refreshSandbox", { sandbox: box.id });
    expect((await server.sh(box.id, "stat -c %u theirs theirs/new.txt; cat theirs/*", { user: "root" })).stdout).toBe(
      `${UID}\n${UID}\nnew\nnew\n`,
    );
    await server.client.call("removeSandbox", { sandbox: box.id });
    rmSync(place, { recursive: true });
  });

  test("5,000 files that moved arrive in seconds, and the diff after it is empty", async () => {
    const many = join(server.project, "many");
    mkdirSync(many);
    const fill = (text: string): void => {
      for (let index = 0; index < 5_000; index++) writeFileSync(join(many, `f${index}`), `${text} ${index}\n`);
    };
    fill("before");
    const box = await server.create();
    fill("after");
    const began = performance.now();
    const { files, conflicts } = await server.client.call("refreshSandbox", { sandbox: box.id });
    expect(performance.now() - began).toBeLessThan(30_000);
    expect([files, conflicts]).toEqual([5_000, []]);
    expect((await server.sh(box.id, "cat many/f4999; cat many/* | grep -c after")).stdout).toBe("after 4999\n5000\n");
    expect((await server.client.call("diffSandbox", { sandbox: box.id })).entries).toEqual([]);
    rmSync(many, { recursive: true });
  });
});

describe("CLONE-6 a refresh of an ordinary user", needs("root", "user-namespaces", "open-checkout"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ uid: UID, config: { spares: false }, files: FILES });
  });
  afterAll(async () => server?.remove());

  test("merges, and the diff after it tells the sandbox's own changes", async () => {
    const box = await server.create();
    await bothMove(server, box.id);
    execFileSync("chown", ["-hR", `${UID}:${UID}`, server.project]);
    const { conflicts } = await server.client.call("refreshSandbox", { sandbox: box.id });
    expect(conflicts.map(({ path }) => path)).toEqual(["b.txt"]);
    expect((await server.sh(box.id, SEEN)).stdout).toBe(EXPECTED);
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id });
    expect(entries.map(({ path }) => path)).toEqual(["a.txt", "b.txt"]);
  });
});

describe("CLONE-6 a refresh without walls", needs("root", "open-checkout"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({
      config: { spares: false },
      files: { ...FILES, "vivarium.json": JSON.stringify({ driver: "folder" }) },
    });
    chmodSync(server.place, 0o755);
    await server.client.call("trust", { project: server.project });
  });
  afterAll(async () => server?.remove());

  test("merges into the copy, goes back, and the diff after it tells the sandbox's own changes", async () => {
    const box = await server.create();
    expect(box.walled).toBe(false);
    await bothMove(server, box.id);
    const { conflicts, snapshot } = await server.client.call("refreshSandbox", { sandbox: box.id });
    expect(conflicts.map(({ path }) => path)).toEqual(["b.txt"]);
    expect((await server.sh(box.id, SEEN.replace("; ls", "; ls *.txt link"))).stdout).toBe(EXPECTED);
    const own = async (): Promise<string[]> =>
      (await server.client.call("diffSandbox", { sandbox: box.id })).entries.map(({ path }) => path);
    expect(await own()).toEqual(["a.txt", "b.txt"]);
    expect(await server.client.call("sandboxStatus", { sandbox: box.id })).toMatchObject({ stale: false });
    await server.client.call("rollback", { sandbox: box.id, snapshot: snapshot ?? "" });
    expect((await server.sh(box.id, "cat c.txt folder/d.txt")).stdout).toBe("1\n1\n");
    expect(await own()).toEqual(["a.txt", "b.txt"]);
    expect(await server.client.call("sandboxStatus", { sandbox: box.id })).toMatchObject({ stale: true });
  });
});
