/** Folders that a sandbox shares with reality are folders like others: they can be removed, replaced, renamed and moved. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Lab } from "../support/experiments.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LIVE = ["node_modules", "packages/a/node_modules", "target"];
const MODULES = Array.from({ length: 20 }, (_, number) => `m${number}`);
/** As JavaScript's numbers hold them exactly. */
const LARGEST = 2 ** 53;

const files: Record<string, string> = {
  ".gitignore": "node_modules/\ntarget/\n",
  "vivarium.json": JSON.stringify({ mask: ["target/m3/lib/hidden"], capture: { live: LIVE } }),
  "target/m3/lib/hidden": "hidden\n",
  "lib/a.js": "a\n",
  "lib/index.js": "base\n",
  "src/main.js": "main\n",
  "packages/a/index.js": "index\n",
};
for (const folder of LIVE) for (const name of MODULES) files[`${folder}/${name}/lib/index.js`] = `${folder} ${name}\n`;

describe("a folder shared with reality", needs("root", "btrfs"), () => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start({ files });
  });
  afterAll(async () => server?.remove());
  beforeEach(async () => {
    box = (await server.create()).id;
  });

  const sh = async (line: string, sandbox = box): Promise<string> => {
    const { stdout, stderr, end } = await server.sh(sandbox, line);
    expect([stderr, end?.exitCode]).toEqual(["", 0]);
    return stdout;
  };
  const changed = async (sandbox = box): Promise<string[]> =>
    (await server.client.call("diffSandbox", { sandbox })).entries.filter(({ type }) => type !== "dir").map(({ path }) => path);
  const inReality = (): void => {
    for (const folder of LIVE) expect(readdirSync(join(server.project, folder)).toSorted()).toEqual(MODULES.toSorted());
    expect(existsSync(join(server.project, "src/m1"))).toBe(false);
  };

  test("is shown as it is, and is removed and made anew", async () => {
    expect(await sh("cat node_modules/m3/lib/index.js packages/a/node_modules/m4/lib/index.js")).toBe(
      "node_modules m3\npackages/a/node_modules m4\n",
    );
    await sh("rm -rf node_modules && mkdir node_modules && echo own > node_modules/own");
    expect(await sh("ls node_modules")).toBe("own\n");
    expect(await changed()).toEqual([]);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
    expect(await sh("ls node_modules", sandboxes[0]?.id)).toBe("own\n");
    inReality();
  });

  test("is cleaned away by git", async () => {
    await sh("git init -q . 2>/dev/null; git clean -xfdq");
    expect(await sh("ls -d node_modules target packages/a/node_modules 2>&1 || true")).not.toMatch(/^(node_modules|target)/m);
    inReality();
  });

  test("is renamed, with what lies in it, and a snapshot and a fork keep that", async () => {
    await sh("mv target t2 && mv node_modules/m1 src/m1 && echo more >> t2/m0/lib/index.js && mv t2/m2 . && mv m2 t2/m2");
    const look =
      "cat t2/m0/lib/index.js t2/m2/lib/index.js src/m1/lib/index.js; ls t2 | wc -l; [ ! -e target ] && [ ! -e node_modules/m1 ]";
    const before = await sh(look);
    expect(before).toBe(`target m0\nmore\ntarget m2\nnode_modules m1\n${MODULES.length}\n`);
    const snapshot = await server.client.call("createSnapshot", { sandbox: box });
    await sh("rm -rf t2 src");
    await server.client.call("rollback", { sandbox: box, snapshot: snapshot.id });
    expect(await sh(look)).toBe(before);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
    expect(await sh(look, sandboxes[0]?.id)).toBe(before);
    inReality();
  });

  test("is in the diff where it was moved to, and is no change where it was moved back", async () => {
    await sh("mv target t2 && mv packages pk");
    const moved = await changed();
    expect(moved).toContain("t2/m7/lib/index.js");
    expect(moved).toContain("pk/a/index.js");
    expect(moved).toContain("packages/a/index.js");
    expect(moved).toContain("pk/a/node_modules/m7/lib/index.js");
    expect(moved.filter((path) => path.startsWith("target") || path.startsWith("packages/a/node_modules"))).toEqual([]);
    await sh("mv t2 target && mv pk packages");
    expect(await changed()).toEqual([]);
  });

  test("is promoted with its content where it was moved into the project", async () => {
    await sh("mv node_modules/m1 src/m1 && echo mine > src/m1/mine && rm -r src/m1/lib && mv target/m9 src/m9");
    const plan = await server.client.call("planPromotion", { sandbox: box });
    expect(plan.changes.map(({ path }) => path).toSorted()).toEqual(["src/m1/mine", "src/m9/lib/index.js"]);
    inReality();
  });

  test("takes the place of a folder of the project, whose files are then gone, and shows nothing that is hidden", async () => {
    await sh("rm -r lib && mv target/m3/lib lib && [ ! -e lib/hidden ]");
    const { entries } = await server.client.call("diffSandbox", { sandbox: box });
    const told = entries.filter(({ type }) => type !== "dir").map(({ path, status }) => `${status} ${path}`);
    expect(told.toSorted()).toEqual(["changed lib/index.js", "deleted lib/a.js"]);
  });

  test("moves files to and from the project in place", async () => {
    expect(
      await sh(
        `python3 -c "import os; os.rename('src/main.js', 'target/main.js'); os.rename('target/m5', 'm5'); os.rename('target/m6/lib/index.js', 'six')"; cat target/main.js m5/lib/index.js six`,
      ),
    ).toBe("main\ntarget m5\ntarget m6\n");
    inReality();
  });

  test("what an attempt did to it is told, and is not promoted", async () => {
    const ended = await new Lab(server).run(
      [
        "rm -rf node_modules; mv target t && mv t target; mv target/m4/lib target/m5/moved; echo x >> target/m1/lib/index.js; echo fix > fix",
      ],
      {
        checks: ["test -f fix"],
      },
    );
    expect(ended.attempts[0]?.sideChanges).toEqual([`node_modules/ (${MODULES.length} files)`, "target/ (3 files)"]);
  });

  test("has inode numbers that programs can hold as floating-point numbers, each for one file, like the whole system", async () => {
    const numbers = "find / . -xdev -maxdepth 4 -not -path '*/proc' -printf '%D:%i %n %y %i %p\\n' 2>/dev/null";
    expect(Number(await sh(`${numbers} | tee /dev/shm/one | wc -l`))).toBeGreaterThan(1000);
    expect(await sh(`awk '$4 >= ${LARGEST}' /dev/shm/one | head -3`)).toBe("");
    expect(await sh(`awk '$3 == "f" && $2 == 1 { print $1 }' /dev/shm/one | sort | uniq -d | head -3`)).toBe("");
    expect(await sh(`${numbers} | diff - /dev/shm/one | head -3`)).toBe("");
    // Files keep theirs, before and after they are written to.
    expect(
      await sh(
        "stat -c %D:%i target/m1/lib/index.js /etc/hostname > /dev/shm/a; echo >> target/m1/lib/index.js; stat -c %D:%i target/m1/lib/index.js /etc/hostname | cmp - /dev/shm/a",
      ),
    ).toBe("");
  });
});
