/** Ids as directories of companies give them: larger than the range that every sandbox has. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";

const OWNER = 1_234_567;
const GROUP = 7_654_321;
const OTHER = 2_345_678;
/** Of no file and no account. */
const STRANGER = 3_456_789;

describe("a project with large ids", needs("root"), () => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "mine.txt": "mine\n", "src/theirs.txt": "theirs\n" } });
    chmodSync(server.place, 0o755);
    execFileSync("chown", ["-R", `${OWNER}:${GROUP}`, server.project]);
    chownSync(join(server.project, "src/theirs.txt"), OTHER, OTHER);
    box = (await server.create({ user: String(OWNER) })).id;
  });
  afterAll(async () => server?.remove());

  test("CLONE-1: its files have their owners inside, and its owner works in it", async () => {
    const line = "id -u; stat -c '%u:%g' . mine.txt src/theirs.txt; echo more >> mine.txt; echo new > new.txt; stat -c %u new.txt";
    const { stdout, end } = await server.sh(box, line);
    expect(stdout).toBe(`${OWNER}\n${OWNER}:${GROUP}\n${OWNER}:${GROUP}\n${OTHER}:${OTHER}\n${OWNER}\n`);
    expect(end?.exitCode).toBe(0);
  });

  test("root inside restores archives with these owners, and not with owners that this machine does not know", async () => {
    const archive = (owner: number): string =>
      `tar --owner=:${owner} --group=:${owner} -cf /tmp/a.tar mine.txt && tar -C /tmp -xf /tmp/a.tar`;
    const restored = await server.sh(box, `${archive(OTHER)} && stat -c %u:%g /tmp/mine.txt`, { user: "root" });
    expect(restored.stdout).toBe(`${OTHER}:${OTHER}\n`);
    expect((await server.sh(box, archive(STRANGER), { user: "root" })).end?.exitCode).not.toBe(0);
  });

  test("MT-07: outside, none of them is an id of anyone", async () => {
    const sibling = (await server.create({ user: String(OWNER) })).id;
    const outside = async (id: string): Promise<number[]> => {
      const { stdout } = await server.sh(id, "awk '$3 == 1 { print $2 }' /proc/self/uid_map /proc/self/gid_map");
      return stdout.trim().split("\n").map(Number);
    };
    const [first, second] = [await outside(box), await outside(sibling)];
    expect(first.length).toBeGreaterThanOrEqual(4);
    expect(first.every((id) => id >= LIMITS.largeIdsStart && id < LIMITS.uidRangeStart)).toBe(true);
    expect(first.filter((id) => second.includes(id))).toEqual([]);
    const { pid } = await server.sh(sibling, "exec sleep 600", { background: true });
    const { processId } = await server.client.call("inspectSandbox", { sandbox: sibling });
    const children = readFileSync(`/proc/${processId}/task/${processId}/children`, "utf8").trim().split(" ");
    const status = children
      .map((child) => readFileSync(`/proc/${child}/status`, "utf8"))
      .find((text) => new RegExp(`^NSpid:.*\\t${pid}$`, "m").test(text));
    expect(second, "also of a process that runs").toContain(Number(/^Uid:\s+(\d+)/m.exec(status ?? "")?.[1]));
    await server.client.call("removeSandbox", { sandbox: sibling });
  });

  test("a spare that was made for another user is not given to one whose id it lacks", async () => {
    const [first, second] = [await server.create(), await server.create({ user: String(STRANGER) })];
    expect((await server.sh(second.id, "id -u; id -g")).stdout).toBe(`${STRANGER}\n${STRANGER}\n`);
    for (const { id } of [first, second]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("a user that is in a group which does not exist here has the other ones", async () => {
    await server.sh(box, `printf 'far:x:${STRANGER}:daemon\\nnear:x:${GROUP}:daemon\\n' >> /etc/group`, { user: "root" });
    const { stdout } = await server.sh(box, "id -G", { user: "daemon", cwd: "/" });
    expect(stdout.trim().split(" ")).toContain(String(GROUP));
    expect(stdout).not.toContain(String(STRANGER));
  });

  test("a snapshot, a rollback and a fork keep the owners", async () => {
    const snapshot = await server.client.call("createSnapshot", { sandbox: box });
    await server.client.call("rollback", { sandbox: box, snapshot: snapshot.id });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
    for (const id of [box, sandboxes[0]?.id ?? ""])
      expect((await server.sh(id, "stat -c %u new.txt src/theirs.txt")).stdout).toBe(`${OWNER}\n${OTHER}\n`);
  });

  test("what is promoted has the right owners in reality", async () => {
    await server.sh(box, "echo changed > src/theirs.txt", { user: "root" });
    const promotion = await server.client.call("promote", { sandbox: box });
    expect(promotion).toMatchObject({ state: "applied" });
    expect(readFileSync(join(server.project, "src/theirs.txt"), "utf8")).toBe("changed\n");
    const owner = (name: string): number => statSync(join(server.project, name)).uid;
    expect([owner("mine.txt"), owner("new.txt"), owner("src/theirs.txt")]).toEqual([OWNER, OWNER, OTHER]);
  });

  test("create says whose files there is no room for", async () => {
    const many = LIMITS.largeIds + 2;
    for (let index = 0; index < many; index += 1) {
      const file = join(server.project, "src", `of-${index}`);
      writeFileSync(file, "");
      chownSync(file, 5_000_000 + index, GROUP);
    }
    const crowded = await server.create({ user: String(OWNER) });
    expect(crowded.notes).toEqual([expect.stringMatching(/^Only 128 users with ids from 65536 on exist in a sandbox/)]);
    expect((await server.sh(crowded.id, "id -u; stat -c %u mine.txt")).stdout, "the caller has room").toBe(`${OWNER}\n${OWNER}\n`);
  });
});
