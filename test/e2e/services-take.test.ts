/** When a running service's data is copied, and what is used when that fails (CLONE-7). */
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const NOBODY = 65_534;

describe.each(["btrfs", "plain"] as const)("data that a service's line takes, on %s", (storage) => {
  describe("storage", needs(...(storage === "btrfs" ? (["root", "btrfs"] as const) : (["root"] as const))), () => {
    let server: TestServer;
    let lab: Lab;

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage } });
      lab = new Lab(server);
    });
    beforeEach(() => lab.reset());
    afterAll(() => server.remove());

    test("CLONE-7: is that of the last copy until it is older than `every`", async () => {
      await lab.serve({ every: "1h" });
      lab.say("first");
      expect(await lab.seen()).toBe("first");
      lab.say("second");
      expect(await lab.seen()).toBe("first");
      await lab.serve({ every: 0 });
      expect(await lab.seen()).toBe("second");
      lab.say("third");
      expect(await lab.seen()).toBe("third");
      // What one copy had and the next has not is gone.
      await lab.serve({ every: 0, take: 'echo other > "$VIV_DATA/other"' });
      expect(await lab.seen("ls -A")).toBe("other");
    });

    test("CLONE-7: never is what the real one is writing to: its folders show the copy, or nothing", async () => {
      lab.say("real");
      writeFileSync(join(lab.further, "in-use"), "real");
      await lab.serve({ data: [lab.data, lab.further], take: 'echo copy > "$VIV_DATA/value"' });
      const { id } = await server.create();
      const { stdout } = await server.sh(id, `cat ${lab.data}/value; ls -A ${lab.further}; echo changed > ${lab.data}/value; echo end`);
      expect(stdout).toBe("copy\nend\n");
      expect(readFileSync(join(lab.data, "value"), "utf8")).toBe("real");
      // Fewer folders, and then all of them again.
      await lab.serve({ take: 'echo copy > "$VIV_DATA/value"' });
      expect(await lab.seen()).toBe("copy");
      await lab.serve({ data: [lab.data, lab.further], take: 'echo copy > "$VIV_DATA/value"' });
      expect(await lab.seen(`ls -A ${lab.further}; cat value`)).toBe("copy");
      await server.client.call("removeSandbox", { sandbox: id });
    });

    test("CLONE-7: in a folder of the project shows the copy, too", async () => {
      const inside = join(server.project, "db");
      mkdirSync(inside, { recursive: true });
      writeFileSync(join(inside, "in-use"), "real");
      await lab.serve({ data: [inside], take: 'echo copy > "$VIV_DATA/value"' });
      const { id } = await server.create();
      expect((await server.sh(id, "ls -A db; cat db/value")).stdout).toBe("value\ncopy\n");
      const { changes } = await server.client.call("staleness", { sandbox: id });
      expect(changes).toEqual([]);
      await server.client.call("removeSandbox", { sandbox: id });
      rmSync(inside, { recursive: true });
    });

    test("CLONE-7: stays the earlier one when a take fails, and that is told", async () => {
      lab.say("good");
      await lab.serve({ every: 0 });
      expect(await lab.seen()).toBe("good");
      writeFileSync(lab.broken, "");
      lab.say("bad");
      const { id } = await server.create();
      expect((await server.sh(id, `cat ${lab.data}/value`)).stdout).toBe("good");
      const { capture } = await server.client.call("inspectSandbox", { sandbox: id });
      expect(capture.notes).toContainEqual(
        expect.stringMatching(/^The data of the service db could not be taken, so those of .* are used: .* 7: it broke$/),
      );
      const { events } = await server.client.call("listEvents", { limit: 1000 });
      const told = events.findLast(({ type }) => type === "service.failed")?.data;
      expect(told).toEqual({ project: server.project, service: "db", reason: "The take line ended with 7: it broke" });
      expect(lab.kept()).toHaveLength(1);
      await server.client.call("removeSandbox", { sandbox: id });
      rmSync(lab.broken);
      expect(await lab.seen()).toBe("bad");
    });

    test("CLONE-7: stays the earlier one when the server is killed in the middle of a take", async () => {
      lab.say("good");
      await lab.serve({ every: 0 });
      expect(await lab.seen()).toBe("good");
      writeFileSync(lab.hanging, "");
      lab.say("half");
      const cut = server.create().catch(() => undefined);
      await eventually(
        () => lab.kept(),
        (names) => names.length === 2 && names.some((name) => existsSync(join(name, "value")) && existsSync(join(name, "half"))),
      );
      await server.kill();
      await cut;
      // What the killed server left running must not be heard by the next one.
      writeFileSync(lab.broken, "");
      rmSync(lab.hanging);
      await server.up();
      expect(await lab.seen()).toBe("good");
      expect(lab.kept()).toHaveLength(1);
      rmSync(lab.broken);
      expect(await lab.seen()).toBe("half");
    });
  });
});

describe("a take line", needs("root"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start();
    lab = new Lab(server);
    lab.reset();
  });
  afterAll(() => server.remove());

  test("CLONE-7: runs as the user it names, who reaches nothing of the state folder but its own empty one", async () => {
    const line = `n=$(ls -A "$VIV_DATA" | wc -l); echo $n > "$VIV_DATA/there"; id -u > "$VIV_DATA/user"; ls ${server.paths.home} 2> "$VIV_DATA/refused"; env | cut -d= -f1 | sort > "$VIV_DATA/names"`;
    await lab.serve({ take: line, takeUser: "nobody" });
    const { id } = await server.create();
    const { stdout } = await server.sh(id, `cd ${lab.data}; cat user there; grep -c denied refused; stat -c %u:%a . user; cat names`);
    const [user, there, refused, folder, file, ...names] = stdout.trim().split("\n");
    expect([user, there, refused, folder, file]).toEqual([String(NOBODY), "0", "1", `${NOBODY}:700`, `${NOBODY}:644`]);
    expect(names).toEqual(["HOME", "LOGNAME", "PATH", "PWD", "USER", "VIV_DATA"]);
    // Other servers of this machine may be taking data right now.
    await eventually(
      () => readdirSync("/run").filter((name) => name.startsWith("viv-data-")),
      (places) => places.length === 0,
    );
    await server.client.call("removeSandbox", { sandbox: id });
  });

  test("CLONE-7: has no effect until its config is trusted", async () => {
    const mark = join(server.place, "taken-without-trust");
    const db = { command: "true", data: [lab.data], take: `echo 1 > ${mark}; echo 1 > "$VIV_DATA/value"` };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ services: { db } }));
    const before = await server.create();
    expect(existsSync(mark)).toBe(false);
    await server.client.call("trust", { project: server.project });
    const after = await server.create();
    expect(existsSync(mark)).toBe(true);
    for (const { id } of [before, after]) await server.client.call("removeSandbox", { sandbox: id });
  });

  test("CLONE-7: that fails from the start leaves the service's folders empty", async () => {
    lab.say("real");
    await lab.serve({ take: "true", every: 0 });
    const { id } = await server.create();
    expect((await server.sh(id, `ls -A ${lab.data}; echo end`)).stdout).toBe("end\n");
    const { capture } = await server.client.call("inspectSandbox", { sandbox: id });
    expect(capture.notes).toContainEqual(expect.stringMatching(/they are empty inside: The take line wrote nothing into \$VIV_DATA/));
    await server.client.call("removeSandbox", { sandbox: id });
  });

  test("CLONE-7: can't put its copy nowhere or over the project", async () => {
    await expect(lab.serve({ data: [] })).rejects.toMatchObject({ code: "config_invalid" });
    await expect(lab.serve({ take: undefined, load: "true" })).rejects.toMatchObject({ code: "config_invalid" });
    await lab.serve({ data: [server.place] });
    await expect(server.create()).rejects.toMatchObject({
      code: "config_invalid",
      message: expect.stringContaining("holds the project itself"),
    });
  });

  test("CLONE-7: serves many clones that are made at once with one copy", async () => {
    const count = join(server.place, "count");
    await lab.serve({ take: `echo taken >> ${count}; sleep 0.5; echo 1 > "$VIV_DATA/value"`, every: 0 });
    const boxes = await Promise.all([1, 2, 3, 4].map(() => server.create()));
    // The first is under way when the others ask; those are content with the one begun after that.
    expect(readFileSync(count, "utf8").trim().split("\n").length).toBeLessThanOrEqual(2);
    for (const { id } of boxes) await server.client.call("removeSandbox", { sandbox: id });
  });
});

describe("a take line of an ordinary user", needs("root", "user-namespaces", "open-checkout"), () => {
  test("CLONE-7: runs as that user, and its copy is in the clone", async () => {
    const server = await TestServer.start({ uid: NOBODY });
    try {
      const lab = new Lab(server, NOBODY);
      await lab.serve({ take: 'id -u > "$VIV_DATA/value"', load: 'cp "$VIV_DATA/value" "$VIV_DATA/loaded"' });
      expect(await lab.seen("cat value loaded")).toBe(`${NOBODY}\n${NOBODY}`);
      await lab.serve({ take: 'id -u > "$VIV_DATA/value"', takeUser: "root" });
      const { id } = await server.create();
      const { capture } = await server.client.call("inspectSandbox", { sandbox: id });
      expect(capture.notes).toContainEqual(expect.stringContaining("Only a server that runs as root can take data as root."));
    } finally {
      await server.remove();
    }
  });
});

/** A service whose data is a value in a file, and a line that copies it: slowly or badly, when told to. */
class Lab {
  readonly data: string;
  readonly further: string;
  readonly broken: string;
  readonly hanging: string;
  readonly #server: TestServer;

  constructor(server: TestServer, uid = 0) {
    this.#server = server;
    this.data = join(server.place, "data");
    this.further = join(server.place, "further");
    this.broken = join(server.place, "broken");
    this.hanging = join(server.place, "hanging");
    for (const folder of [this.data, this.further]) mkdirSync(folder);
    if (uid !== 0) for (const folder of [this.data, this.further]) chownSync(folder, uid, uid);
  }

  reset(): void {
    for (const file of [this.broken, this.hanging]) rmSync(file, { force: true });
  }

  say(value: string): void {
    writeFileSync(join(this.data, "value"), value);
  }

  async serve(db: Record<string, unknown>): Promise<void> {
    const take =
      `cp ${this.data}/value "$VIV_DATA" && [ ! -e ${this.hanging} ] || touch "$VIV_DATA/half"; ` +
      `while [ -e ${this.hanging} ]; do sleep 0.05; done; [ ! -e ${this.broken} ] || { echo it broke >&2; exit 7; }`;
    const services = { db: { command: "true", data: [this.data], take, ...db } };
    writeFileSync(join(this.#server.project, "vivarium.json"), JSON.stringify({ services }));
    await this.#server.client.call("trust", { project: this.#server.project });
  }

  /** What a new clone sees. */
  async seen(line = "cat value"): Promise<string> {
    const { id } = await this.#server.create();
    const { stdout } = await this.#server.sh(id, `cd ${this.data} && ${line}`);
    await this.#server.client.call("removeSandbox", { sandbox: id });
    return stdout.trim();
  }

  /** Copies in the state folder, which only the server can read. */
  kept(): string[] {
    const services = join(this.#server.paths.home, "services");
    expect(statSync(this.#server.paths.home).mode & 0o777).toBe(0o700);
    return readdirSync(services).flatMap((project) =>
      readdirSync(join(services, project, "db"))
        .filter((name) => name.startsWith("take-"))
        .map((name) => join(services, project, "db", name)),
    );
  }
}
