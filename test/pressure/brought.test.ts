/** Sandboxes that were launched ahead, and got what changed in their project since: behind the answer their base is frozen. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { processesInside, traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** What it lists of every file: type, mode, owner, size, time of its content, name, where it leads. */
const LIST = "find . -path ./.git -prune -o ! -type d -printf '%y %m %U %s %T@ %p %l\\n' | sort; find . -type d -printf '%m %p\\n' | sort";
const FILES = {
  ...Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`src/${index % 4}/${index}.ts`, `export const n = ${index};\n`])),
  "hello.txt": "hello\n",
  "kept/file": "kept\n",
  "old/file": "old\n",
};

describe("a sandbox launched ahead of a change in its project", needs("root", "btrfs"), () => {
  let server: TestServer;
  let made = 0;

  beforeAll(async () => {
    server = await TestServer.start({ files: FILES });
  });
  afterAll(async () => server.remove());
  beforeEach(async () => void (await server.client.call("prune", { all: true })));

  const notes = (kind: "bases" | "tips"): string[] => readdirSync(join(server.paths.home, "pool/freezing", kind));
  const here = (): string => execFileSync("sh", ["-c", LIST], { cwd: server.project, encoding: "utf8" });
  const change = (): void => appendFileSync(join(server.project, "src/1/1.ts"), `// ${made++}\n`);

  /** Waits until a spare is there and returns its id. */
  async function spare(): Promise<string> {
    const { sandboxes } = await server.client.call("listSandboxes", {});
    const known = new Set(sandboxes.map(({ id }) => id));
    const ids = await eventually(
      () => traces(server).runs.filter((id) => !known.has(id) && processesInside(server).length > known.size),
      (found) => found.length === 1,
    );
    return ids[0] ?? "";
  }

  /** It has what reality has, nothing of it counts as a change of its own, and nothing changed since. */
  async function expectWhole(id: string): Promise<void> {
    expect((await server.sh(id, LIST)).stdout).toBe(here());
    expect((await server.client.call("diffSandbox", { sandbox: id, stat: true })).entries).toEqual([]);
    expect(await server.client.call("staleness", { sandbox: id })).toMatchObject({ stale: false, changes: [] });
  }

  test("CLONE-5: is brought to what the project is now, whatever changed in it", async () => {
    await server.create();
    const ahead = await spare();
    const at = (name: string): string => join(server.project, name);
    appendFileSync(at("src/0/0.ts"), "// longer\n");
    writeFileSync(at("src/0/4.ts"), "");
    writeFileSync(at("src/0/8.ts.new"), "saved as editors do\n");
    renameSync(at("src/0/8.ts.new"), at("src/0/8.ts"));
    chmodSync(at("src/1/1.ts"), 0o755);
    utimesSync(at("src/1/5.ts"), 1_000_000, 1_000_000);
    unlinkSync(at("src/2/2.ts"));
    renameSync(at("old"), at("new"));
    mkdirSync(at("made/deep"), { recursive: true });
    writeFileSync(at("made/deep/file"), "made\n", { mode: 0o600 });
    symlinkSync("../hello.txt", at("made/link"));
    linkSync(at("hello.txt"), at("made/hard"));
    rmSync(at("kept/file"));
    mkdirSync(at("kept/file"));
    writeFileSync(at("src/3/.gitignored"), "x");
    const box = await server.create();
    expect(box.id).toBe(ahead);
    await expectWhole(box.id);
    expect((await server.sh(box.id, "stat -c %h hello.txt made/hard")).stdout).toBe("2\n2\n");
    await eventually(
      () => notes("bases"),
      (left) => left.length === 0,
    );
    expect(notes("tips")).toEqual([]);
  });

  test("is compared with the base of its answer, in snapshots and forks too, by what the kernel knows", async () => {
    const first = await server.create();
    await spare();
    change();
    const box = await server.create();
    // The base that it was launched from goes with the last sandbox that needs it.
    await server.client.call("removeSandbox", { sandbox: first.id });
    expect(existsSync(join(server.paths.home, "pool/volumes", box.id, "origin"))).toBe(true);
    await server.sh(box.id, "echo mine > mine; echo more >> src/2/6.ts");
    const changed = ["mine", "src/2/6.ts"];
    const of = async (id: string): Promise<string[]> =>
      (await server.client.call("diffSandbox", { sandbox: id, stat: true })).entries.map(({ path }) => path).toSorted();
    expect(await of(box.id)).toEqual(changed);
    await server.client.call("createSnapshot", { sandbox: box.id, name: "one" });
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    expect(await of(sandboxes[0]?.id ?? "")).toEqual(changed);
    await server.sh(box.id, "rm mine");
    await server.client.call("rollback", { sandbox: box.id, snapshot: "one" });
    expect(await of(box.id)).toEqual(changed);
    change();
    expect(await server.client.call("staleness", { sandbox: box.id })).toMatchObject({ stale: true, changes: [{ path: "src/1/1.ts" }] });
    await server.client.call("refreshSandbox", { sandbox: box.id });
    expect(await of(box.id)).toEqual(changed);
  });

  test("one change after the other is brought, each sandbox keeps its own moment", async () => {
    const boxes: { id: string; list: string }[] = [];
    await server.create();
    for (let round = 0; round < 5; round += 1) {
      const ahead = await spare();
      change();
      const box = await server.create();
      expect(box.id).toBe(ahead);
      boxes.push({ id: box.id, list: here() });
    }
    for (const { id, list } of boxes) {
      expect((await server.sh(id, LIST)).stdout).toBe(list);
      expect((await server.client.call("diffSandbox", { sandbox: id, stat: true })).entries).toEqual([]);
    }
  });

  test("what a config leaves out is not brought", async () => {
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ capture: { exclude: ["src/1/secret"] } }));
    await server.client.call("trust", { project: server.project });
    writeFileSync(join(server.project, "src/1/secret"), "one");
    await server.create();
    const ahead = await spare();
    writeFileSync(join(server.project, "src/1/secret"), "two");
    change();
    const box = await server.create();
    expect(box.id).toBe(ahead);
    expect((await server.sh(box.id, "ls src/1")).stdout).not.toContain("secret");
    expect((await server.client.call("diffSandbox", { sandbox: box.id, stat: true })).entries).toEqual([]);
    rmSync(join(server.project, "src/1/secret"));
    rmSync(join(server.project, "vivarium.json"));
  });

  for (const point of ["create.brought", "start.recorded", "create.claimed"]) {
    test(`F-01: a server killed at ${point} leaves a sandbox that is whole, or none`, async () => {
      await server.create();
      await spare();
      change();
      const before = (await server.client.call("listSandboxes", {})).sandboxes.length;
      await server.dieAt(point, () => server.create());
      const { sandboxes } = await server.client.call("listSandboxes", {});
      expect(sandboxes.length).toBe(before + (point === "create.brought" ? 0 : 1));
      for (const { id } of sandboxes.slice(before)) await expectWhole(id);
      await eventually(
        () => notes("bases"),
        (left) => left.length === 0,
      );
      const next = await server.create();
      await expectWhole(next.id);
    });
  }

  test("F-01: a server killed a moment after the answer leaves it whole", async () => {
    expect((await server.create()).state).toBe("running");
    for (let afterMs = 0; afterMs < 40; afterMs += 4) {
      await spare();
      change();
      const box = await server.create();
      await delay(afterMs);
      await server.kill();
      await server.up();
      await expectWhole(box.id);
      await server.client.call("removeSandbox", { sandbox: box.id });
      await server.create();
    }
  }, 60_000);

  /** As a failure of the machine leaves it, between the answer and what is written behind it: nothing runs, and the notes are of another boot. */
  async function failAt(point: string): Promise<void> {
    await server.arm(point);
    await expect(server.create()).rejects.toMatchObject({ code: "server_unreachable" });
    await server.died();
    for (const pid of processesInside(server)) process.kill(pid, "SIGKILL");
  }

  function fromOtherBoot(kind: "bases" | "tips"): void {
    for (const name of notes(kind)) {
      const note = join(server.paths.home, "pool/freezing", kind, name);
      const said = readlinkSync(note).split(" ");
      unlinkSync(note);
      symlinkSync(["11111111-2222-3333-4444-555555555555", ...said.slice(1)].join(" "), note);
    }
  }

  test("F-01: a failure of the machine before its base was on the disk undoes it, and the next one is whole", async () => {
    const first = await server.create();
    await spare();
    change();
    await failAt("create.claimed");
    expect(notes("bases")).toHaveLength(1);
    fromOtherBoot("bases");
    fromOtherBoot("tips");
    await server.up();
    expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).toEqual([first.id]);
    expect([notes("bases"), notes("tips")]).toEqual([[], []]);
    const next = await server.create();
    await expectWhole(next.id);
  });

  test("F-01: the same where not even the notes were on the disk", async () => {
    const first = await server.create();
    await spare();
    change();
    await failAt("create.claimed");
    for (const name of notes("bases")) {
      expect(existsSync(join(server.paths.home, "pool/bases", name)), "the base is not frozen yet").toBe(false);
      unlinkSync(join(server.paths.home, "pool/freezing/bases", name));
    }
    await server.up();
    expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).toEqual([first.id]);
    const next = await server.create();
    await expectWhole(next.id);
  });
});
