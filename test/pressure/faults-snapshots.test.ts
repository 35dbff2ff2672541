/** F of the threat list about snapshots: damage is found before or while it is read, and nothing is torn or half there. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import { eventually, TestServer } from "../support/server.ts";
import { missing, needs } from "../support/skip.ts";

type StorageName = "btrfs" | "plain";
const STORAGES = (["btrfs", "plain"] as const).filter((name) => name === "plain" || missing("btrfs") === undefined);

const FOLDERS = {
  btrfs: { snapshots: "pool/snapshots", volumes: "pool/volumes", project: "roots/0" },
  plain: { snapshots: "volumes/snapshots", volumes: "volumes/volumes", project: "roots/0/upper" },
} as const;

/** A server with one storage, and a sandbox with a process that must go on. */
class Lab {
  readonly server: TestServer;
  readonly storage: StorageName;
  box!: Sandbox;

  constructor(server: TestServer, storage: StorageName) {
    this.server = server;
    this.storage = storage;
  }

  static async start(storage: StorageName): Promise<Lab> {
    return new Lab(await TestServer.start({ config: { storage, spares: false } }), storage);
  }

  async begin(): Promise<void> {
    this.box = await this.server.create();
    await this.server.sh(this.box.id, "while :; do date +%s%N > beat; sleep 0.05; done", { background: true });
  }

  snapshot(name: string): Promise<{ id: string }> {
    return this.server.client.call("createSnapshot", { sandbox: this.box.id, name });
  }

  async fork(snapshot?: string): Promise<Sandbox> {
    const { sandboxes } = await this.server.client.call("forkSandbox", {
      sandbox: this.box.id,
      ...(snapshot === undefined ? {} : { snapshot }),
    });
    return sandboxes[0] as Sandbox;
  }

  rollback(snapshot: string): Promise<Sandbox> {
    return this.server.client.call("rollback", { sandbox: this.box.id, snapshot });
  }

  /** Where a snapshot lies. */
  place(id: string): string {
    const folder = join(this.server.paths.home, FOLDERS[this.storage].snapshots);
    return join(folder, readdirSync(folder).find((name) => name.startsWith(id)) ?? "none");
  }

  inside(id: string, file: string): string {
    return join(this.place(id), FOLDERS[this.storage].project, file);
  }

  /** The sandbox's own processes go on, and so do its files. */
  async isWell(): Promise<void> {
    const { server, box } = this;
    const beat = async () => (await server.sh(box.id, "cat beat")).stdout;
    const before = await beat();
    await eventually(beat, (now) => now !== "" && now !== before);
    expect(await server.client.call("inspectSandbox", { sandbox: box.id })).toMatchObject({ state: "running", reason: null });
  }

  async isRefused(snapshot: string, why: RegExp): Promise<void> {
    const refusal = { code: "snapshot_damaged", message: expect.stringMatching(why) };
    await expect(this.rollback(snapshot)).rejects.toMatchObject(refusal);
    await expect(this.fork(snapshot)).rejects.toMatchObject(refusal);
    await this.isWell();
  }

  async events(type: string): Promise<unknown[]> {
    const { events } = await this.server.client.call("listEvents", { limit: 1000 });
    return events.filter((event) => event.type === type);
  }
}

/** Turns one bit of a file over where some text stands, without the file system that lies in it, if one does, noticing. */
function flipBit(file: string, marker: string): void {
  const found = execFileSync("grep", ["-obUaF", "-m1", marker, file], { maxBuffer: 1024 ** 2 });
  const offset = Number(found.toString().split(":")[0]);
  const fd = openSync(file, "r+");
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, offset);
  writeSync(fd, Buffer.from([(byte[0] ?? 0) ^ 1]), 0, 1, offset);
  closeSync(fd);
}

describe.each(STORAGES)("snapshots on %s", { ...needs("root"), timeout: 60_000 }, (storage) => {
  let lab: Lab;
  beforeAll(async () => {
    lab = await Lab.start(storage);
  });
  beforeEach(() => lab.begin());
  afterEach(async () => {
    for (const { id } of (await lab.server.client.call("listSandboxes", {})).sandboxes)
      await lab.server.client.call("removeSandbox", { sandbox: id });
  });
  afterAll(() => lab?.server.remove());

  test("F-36: one that is missing is refused before anything is given up, and the others are as they were", async () => {
    await lab.server.sh(lab.box.id, "echo one > file");
    await lab.snapshot("one");
    const lost = await lab.snapshot("lost");
    await lab.server.sh(lab.box.id, "echo two > file");
    const place = lab.place(lost.id);
    if (storage === "btrfs") execFileSync("btrfs", ["subvolume", "delete", place]);
    else rmSync(place, { recursive: true });
    await lab.isRefused("lost", /gone/);
    expect((await lab.server.sh(lab.box.id, "cat file")).stdout).toBe("two\n");
    expect(await lab.events("snapshot.damaged")).toMatchObject([{ data: { id: lost.id } }, { data: { id: lost.id } }]);
    await lab.server.client.call("removeSnapshot", { sandbox: lab.box.id, snapshot: "lost" });
    expect((await lab.server.sh((await lab.fork("one")).id, "cat file")).stdout).toBe("one\n");
    await lab.rollback("one");
    expect((await lab.server.sh(lab.box.id, "cat file")).stdout).toBe("one\n");
  });

  test("F-36: one that something else has taken the place of is refused", async () => {
    const good = await lab.snapshot("good");
    const swapped = await lab.snapshot("swapped");
    const replaced = await lab.snapshot("replaced");
    const [from, to, plain] = [lab.place(good.id), lab.place(swapped.id), lab.place(replaced.id)];
    await lab.server.sh(lab.box.id, "echo later > later");
    const other = lab.place((await lab.snapshot("other")).id);
    if (storage === "btrfs") {
      for (const place of [to, plain]) execFileSync("btrfs", ["subvolume", "delete", place]);
      execFileSync("btrfs", ["subvolume", "snapshot", "-r", other, to]);
    } else {
      for (const place of [to, plain]) rmSync(place, { recursive: true });
      execFileSync("cp", ["-a", other, to]);
    }
    mkdirSync(plain);
    await lab.isRefused("swapped", /something else|content/);
    await lab.isRefused("replaced", /something else|can't be read/);
    expect((await lab.server.sh((await lab.fork("good")).id, "ls")).stdout).toContain("hello.txt");
    expect(from).toContain(good.id);
  });

  test("F-36: one that was written to is refused, although nothing in it is unreadable", async () => {
    await lab.server.sh(lab.box.id, "echo saved > file");
    const { id } = await lab.snapshot("written");
    if (storage === "btrfs") execFileSync("btrfs", ["property", "set", lab.place(id), "ro", "false"]);
    const { mtimeNs } = execStat(lab.inside(id, "file"));
    writeFileSync(lab.inside(id, "file"), "SAVED\n");
    execFileSync("touch", ["-d", `@${mtimeNs}`, lab.inside(id, "file")]);
    if (storage === "btrfs") execFileSync("btrfs", ["property", "set", lab.place(id), "ro", "true"]);
    expect(readFileSync(lab.inside(id, "file"), "utf8")).toBe("SAVED\n");
    await lab.isRefused("written", storage === "btrfs" ? /changed/ : /content/);
  });

  test("F-35: taken while a program writes, one holds a moment that was: never the second record without the first", async () => {
    await lab.server.sh(lab.box.id, "i=0; while :; do i=$((i+1)); echo $i >> a; echo $i >> b; done", { background: true });
    const lines = (file: string): string[] => readFileSync(file, "utf8").split("\n").slice(0, -1);
    const live = join(lab.server.paths.home, FOLDERS[storage].volumes, lab.box.id, FOLDERS[storage].project);
    // The same without standing still: one file after the other, as a copy does it.
    await eventually(
      () => {
        const first = lines(join(live, "a")).length;
        return lines(join(live, "b")).length - first;
      },
      (ahead) => ahead > 0,
    );
    const taken: string[] = [];
    for (let round = 0; round < 6; round += 1) taken.push((await lab.snapshot(`round-${round}`)).id);
    const counts = taken.map((id) => {
      const [a, b] = [lines(lab.inside(id, "a")), lines(lab.inside(id, "b"))];
      expect(a).toEqual(a.map((_, index) => String(index + 1)));
      expect(b).toEqual(a.slice(0, b.length));
      expect(a.length - b.length).toBeGreaterThanOrEqual(0);
      expect(a.length - b.length).toBeLessThanOrEqual(1);
      return a.length;
    });
    expect(new Set(counts).size).toBeGreaterThan(1);
    await lab.rollback("round-3");
    expect((await lab.server.sh(lab.box.id, "wc -l < a")).stdout.trim()).toBe(String(counts[3]));
  });

  test("F-37: removing snapshots and sandboxes under forks and rollbacks leaves whole ones or none", async () => {
    const { client } = lab.server;
    const told = <T>(call: Promise<T>): Promise<T | string> => call.catch((error: { code: string }) => error.code);
    const sum = "cat data/* | sha256sum";
    const seen = new Set<string>();
    let whole = 0;
    for (let round = 0; round < 8; round += 1) {
      const box = await lab.server.create();
      await lab.server.sh(box.id, "mkdir data; for i in $(seq 60); do head -c 8000 /dev/urandom > data/$i; done");
      const right = (await lab.server.sh(box.id, sum)).stdout;
      for (const name of ["s", "t"]) await client.call("createSnapshot", { sandbox: box.id, name });
      const steps = [
        () => told(client.call("forkSandbox", { sandbox: box.id, snapshot: "s", count: 2 })),
        () => told(client.call("removeSnapshot", { sandbox: box.id, snapshot: "s" })),
        () => told(client.call("rollback", { sandbox: box.id, snapshot: "t" })),
        () => told(client.call("forkSandbox", { sandbox: box.id, snapshot: "t" })),
        () => told(client.call("forkSandbox", { sandbox: box.id })),
        () => told(client.call("removeSandbox", { sandbox: box.id })),
        () => told(client.call("prune", {})),
      ];
      // Another one is first in every round.
      const turned = [...steps.slice(round % steps.length), ...steps.slice(0, round % steps.length)];
      const results = await Promise.all(turned.map((step) => step()));
      const forks = results.flatMap((result) =>
        typeof result === "object" && "sandboxes" in result && Array.isArray(result.sandboxes) ? result.sandboxes : [],
      );
      for (const result of results) if (typeof result === "string") seen.add(result);
      for (const fork of forks) {
        expect((await lab.server.sh(fork.id, sum)).stdout).toBe(right);
        await client.call("removeSandbox", { sandbox: fork.id });
        whole += 1;
      }
    }
    expect([...seen].filter((code) => !["not_found", "not_running", "illegal_transition"].includes(code))).toEqual([]);
    expect(whole).toBeGreaterThan(4);
    expect((await client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).toEqual([lab.box.id]);
  });
});

function execStat(file: string): { mtimeNs: string } {
  return { mtimeNs: execFileSync("stat", ["-c", "%.9Y", file]).toString().trim() };
}

describe("a bit that turns over on the disk", { ...needs("root"), timeout: 60_000 }, () => {
  test("F-36: on plain storage is found when the snapshot is restored, though the file system hands it out", async () => {
    const lab = await Lab.start("plain");
    try {
      await lab.begin();
      const marker = `marker-${randomBytes(8).toString("hex")}`;
      await lab.server.sh(lab.box.id, `yes ${marker} | head -c 262144 > big`);
      const { id } = await lab.snapshot("marked");
      await lab.snapshot("other");
      const file = lab.inside(id, "big");
      const { mtimeNs } = execStat(file);
      flipBit(file, marker);
      execFileSync("touch", ["-d", `@${mtimeNs}`, file]);
      // What would be restored otherwise: no error, and other bytes.
      expect(readFileSync(file, "utf8")).not.toBe(`${marker}\n`.repeat(262144).slice(0, 262144));
      await lab.isRefused("marked", /content/);
      expect((await lab.server.sh((await lab.fork("other")).id, `grep -vc ${marker} big`)).stdout).toBe("1\n");
    } finally {
      await lab.server.remove();
    }
  });

  test.skipIf(missing("btrfs") !== undefined)(
    "F-36 and F-18: on btrfs is never handed out: who reads it is told, the sandbox is marked, all others go on",
    async () => {
      const lab = await Lab.start("btrfs");
      const { server } = lab;
      try {
        await lab.begin();
        const marker = `marker-${randomBytes(8).toString("hex")}`;
        await lab.snapshot("early");
        await server.sh(lab.box.id, `yes ${marker} | head -c 262144 > big; sync`);
        await lab.snapshot("marked");
        await server.sh(lab.box.id, "yes other | head -c 262144 > big; sync");
        await lab.snapshot("late");
        flipBit(join(server.paths.home, "pool.img"), marker);
        const fork = await lab.fork("marked");
        const read = await server.sh(fork.id, "cat big");
        expect(read.stderr).toContain("Input/output error");
        expect(read.end).toMatchObject({ cause: "storage-damaged", message: expect.stringContaining("storage") });
        expect(`${marker}\n`.repeat(262144)).toContain(read.stdout);
        const fetched = server.client.readFile(fork.id, "big").then(({ body }) => text(body));
        await expect(fetched).rejects.toThrow();
        const marked = await eventually(
          () => server.client.call("inspectSandbox", { sandbox: fork.id }),
          ({ reason }) => reason !== null,
        );
        expect(marked).toMatchObject({ state: "running", reason: expect.stringContaining("storage") });
        expect(await lab.events("sandbox.damaged")).toMatchObject([{ sandbox: fork.id }]);
        // What is whole can still be taken out of it, and new work goes on.
        expect((await server.sh(fork.id, "cat hello.txt; echo new > new; cat new")).stdout).toBe("hello\nnew\n");
        await lab.isWell();
        for (const [snapshot, count] of [
          ["early", "0\n"],
          ["late", "43690\n"],
        ] as const) {
          const { stdout } = await server.sh((await lab.fork(snapshot)).id, "cat big 2>/dev/null | wc -l");
          expect(stdout.trim()).toBe(count.trim());
        }
        await lab.rollback("marked");
        expect((await server.sh(lab.box.id, "cat big")).end?.cause).toBe("storage-damaged");
        await lab.rollback("late");
        expect((await server.sh(lab.box.id, "head -1 big")).stdout).toBe("other\n");
        expect(await server.client.call("inspectSandbox", { sandbox: lab.box.id })).toMatchObject({ state: "running", reason: null });
      } finally {
        await server.remove();
      }
    },
  );
});
