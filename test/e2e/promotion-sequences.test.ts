/** Promotions of an unlucky machine, a careless user and a hostile sandbox: the record says what lies in the folder. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Runs in reality alone: a clone has no such variable. */
const inReality = (line: string): string => `test -z "$VIV_STAGE" || { ${line}; }`;

describe("a promotion", needs("root", "btrfs"), () => {
  let server: TestServer;
  const path = (name: string): string => join(server.project, name);
  const read = (name: string): string => readFileSync(path(name), "utf8");
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: server.project, encoding: "utf8", stdio: "pipe" });
  const changed = async (line: string): Promise<string> => {
    const { id } = await server.create();
    expect((await server.sh(id, line)).end?.exitCode).toBe(0);
    return id;
  };
  const newest = async (): Promise<OutputOf<"promote">> => {
    const { promotions } = await server.client.call("listPromotions", { project: server.project });
    const found = promotions.find(({ kind }) => kind === "promotion");
    if (found === undefined) throw new Error("there is no promotion");
    return found;
  };
  const undo = (): Promise<OutputOf<"undoPromotion">> => server.client.call("undoPromotion", { project: server.project });

  beforeAll(async () => {
    server = await TestServer.start({ files: { "a.txt": "a\n", "b.txt": "b\n", "dir/x": "x\n", ".gitignore": "*.log\n" } });
    git("add", ".");
    git("commit", "-q", "-m", "first");
  });
  afterAll(async () => server?.remove());
  beforeEach(() => {
    git("reset", "-q", "--hard", "HEAD");
    git("clean", "-qfdx");
  });

  test("PROM-4: a server killed while the folder is tested says that the change lies there, and undoes it", async () => {
    const sandbox = await changed("echo changed > a.txt");
    const flag = join(server.place, "flag");
    const promoted = server.client.call("promote", { sandbox, to: "dev-tested", checks: [inReality(`touch ${flag}; sleep 100`)] });
    const cut = promoted.then(
      () => "ended",
      () => "cut",
    );
    await eventually(() => existsSync(flag), Boolean, 60_000);
    await server.kill();
    expect(await cut).toBe("cut");
    await server.up();
    expect(read("a.txt")).toBe("changed\n");
    expect(await newest()).toMatchObject({ state: "applied", pending: false });
    expect((await undo()).state).toBe("applied");
    expect([read("a.txt"), (await newest()).state]).toEqual(["a\n", "undone"]);
  });

  test("PROM-3: one whose way back is blocked by an edit stands, and says so", async () => {
    const sandbox = await changed("echo changed > a.txt; echo new > new.txt");
    const promotion = await server.client.call("promote", {
      sandbox,
      to: "dev-tested",
      checks: [inReality("echo mine > a.txt; exit 1")],
    });
    expect(promotion.state).toBe("applied");
    expect(promotion.reason).toContain("could not be brought back: a.txt was edited since");
    expect([read("a.txt"), read("new.txt")]).toEqual(["mine\n", "new\n"]);
    writeFileSync(path("a.txt"), "changed\n");
    expect((await undo()).state).toBe("applied");
    expect([read("a.txt"), existsSync(path("new.txt"))]).toEqual(["a\n", false]);
  });

  test("PROM-4: an undo takes back the last one that lies in the folder, not one that was only verified", async () => {
    await server.client.call("promote", { sandbox: await changed("echo changed > a.txt") });
    const verified = await server.client.call("promote", { sandbox: await changed("echo changed > b.txt"), to: "verified" });
    expect(verified.state).toBe("applied");
    await expect(server.client.call("undoPromotion", { promotion: verified.id })).rejects.toMatchObject({ code: "illegal_transition" });
    const undone = await undo();
    expect([read("a.txt"), read("b.txt")]).toEqual(["a\n", "b\n"]);
    await expect(server.client.call("undoPromotion", { promotion: undone.id })).rejects.toMatchObject({ code: "illegal_transition" });
  });

  test("PROM-3: a file in place of a folder that holds ignored files is refused by name", async () => {
    writeFileSync(path("dir/mine.log"), "mine\n");
    const promotion = await server.client.call("promote", { sandbox: await changed("rm -r dir; echo file > dir") });
    expect(promotion).toMatchObject({ state: "failed", plan: { conflicts: [{ path: "dir", kind: "late edit" }] } });
    expect(promotion.reason).toContain("dir can't be written: it is a folder that holds other files");
    expect(readdirSync(path("dir")).toSorted()).toEqual(["mine.log", "x"]);
  });

  test("PROM-3: looking at a plan leaves no snapshot behind", async () => {
    const sandbox = await changed("echo changed > a.txt");
    for (let times = 0; times < 3; times += 1) await server.client.call("planPromotion", { sandbox });
    expect((await server.client.call("listSnapshots", { sandbox })).snapshots).toEqual([]);
  });

  test("PROM-3: a sandbox that goes on after a promotion promotes what it did since, and merges with edits of the promoted", async () => {
    writeFileSync(path("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n");
    const sandbox = await changed("sed -i s/1/one/ a.txt; echo new > new.txt; echo first > both.txt");
    expect((await server.client.call("promote", { sandbox })).state).toBe("applied");
    writeFileSync(path("a.txt"), read("a.txt").replace("8", "eight"));
    await server.sh(sandbox, "sed -i s/one/ONE/ a.txt; rm new.txt; echo second > both.txt");
    const part = await server.client.call("planPromotion", { sandbox, only: ["both.txt"] });
    expect(part.changes.map((change) => `${change.status} ${change.path}`)).toEqual(["changed both.txt"]);
    const second = await server.client.call("promote", { sandbox });
    expect(second).toMatchObject({ state: "applied", plan: { files: 3, conflicts: [] } });
    expect([read("a.txt"), existsSync(path("new.txt")), read("both.txt")]).toEqual(["ONE\n2\n3\n4\n5\n6\n7\neight\n", false, "second\n"]);
    expect((await server.client.call("promote", { sandbox })).reason).toBe("There is nothing to promote.");
    expect((await undo()).state).toBe("applied");
    expect([read("a.txt").slice(0, 3), read("new.txt"), read("both.txt")]).toEqual(["one", "new\n", "first\n"]);
    expect((await undo()).state).toBe("applied");
    expect([read("a.txt").slice(0, 1), existsSync(path("new.txt")), existsSync(path("both.txt"))]).toEqual(["1", false, false]);
    expect(await server.client.call("promote", { sandbox })).toMatchObject({ state: "applied", plan: { files: 2 } });
  });

  test("PROM-3: a sandbox rolled back to before a promotion does not take it back", async () => {
    const sandbox = await changed("true");
    const { id: snapshot } = await server.client.call("createSnapshot", { sandbox });
    await server.sh(sandbox, "echo promoted > a.txt");
    await server.client.call("promote", { sandbox });
    await server.client.call("rollback", { sandbox, snapshot });
    await server.sh(sandbox, "echo other > b.txt");
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(plan.changes.map((change) => change.path)).toEqual(["b.txt"]);
  });

  test("PROM-5: marks of a conflict that a refresh left wait for a person", async () => {
    const sandbox = await changed("echo inside > a.txt");
    writeFileSync(path("a.txt"), "outside\n");
    expect((await server.client.call("refreshSandbox", { sandbox })).conflicts.map((conflict) => conflict.path)).toEqual(["a.txt"]);
    const promotion = await server.client.call("promote", { sandbox });
    expect(promotion).toMatchObject({ state: "waiting", plan: { risks: [{ path: "a.txt", kind: "conflict" }] } });
    expect(read("a.txt")).toBe("outside\n");
    await server.sh(sandbox, "echo both > a.txt");
    expect((await server.client.call("promote", { sandbox })).state).toBe("applied");
    expect(read("a.txt")).toBe("both\n");
  });

  test("PROM-5: an approval is of what was looked at: what reality makes of it since is asked about again", async () => {
    const stages = [{ name: "dev", apply: "folder", approval: "ask" }];
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages }));
    writeFileSync(path("a.txt"), "1\n2\n3\n4\n5\n");
    await server.client.call("trust", { project: server.project });
    const { id: promotion } = await server.client.call("promote", { sandbox: await changed("sed -i s/1/one/ a.txt") });
    writeFileSync(path("a.txt"), "1\n2\n3\n4\nfive\n");
    const again = await server.client.call("continuePromotion", { promotion, approve: true, approver: server.approver() });
    expect([again.state, read("a.txt")]).toEqual(["waiting", "1\n2\n3\n4\nfive\n"]);
    const applied = await server.client.call("continuePromotion", { promotion, approve: true, approver: server.approver() });
    expect([applied.state, read("a.txt")]).toEqual(["applied", "one\n2\n3\n4\nfive\n"]);
  });

  describe("of a project that is not the top of its repository", () => {
    const made = async (name: string, inside: (repository: string) => string, line: string): Promise<OutputOf<"planPromotion">> => {
      const repository = join(server.place, name);
      const project = inside(repository);
      const { id } = await server.client.call("createSandbox", { project });
      expect((await server.sh(id, line)).end?.exitCode).toBe(0);
      return server.client.call("planPromotion", { sandbox: id });
    };
    const repositoryAt = (folder: string, files: Readonly<Record<string, string>>): ((...args: string[]) => string) => {
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), content);
      }
      const run = (...args: string[]): string =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: folder, encoding: "utf8", stdio: "pipe" });
      run("init", "-q");
      run("add", "-f", ".");
      run("commit", "-q", "-m", "first");
      return run;
    };
    const names = (plan: OutputOf<"planPromotion">): string[] => plan.changes.map((change) => change.path);
    const APP = { ".gitignore": ".env\n/app/build/\n*.gen\n", "app/vivarium.json": "{}", "app/a.txt": "a\n", "app/kept.gen": "k\n" };

    test("PROM-3: rules of folders above it count, and what git holds all the same is not ignored", async () => {
      const line = "echo x > a.txt; echo S=1 > .env; mkdir build; echo o > build/o; echo x > kept.gen; echo x > new.gen";
      const plan = await made("whole", (folder) => (repositoryAt(folder, APP), join(folder, "app")), line);
      expect(names(plan)).toEqual(["a.txt", "kept.gen"]);
      expect(plan.leftOut.map(({ path: name }) => name).toSorted()).toEqual([".env", "build/o", "new.gen"]);
    });

    test("PROM-3: rules of a repository that ignores all of it don't", async () => {
      const dotfiles = { ".gitignore": "*\n", "app/vivarium.json": "{}", "app/a.txt": "a\n" };
      expect(names(await made("dotfiles", (folder) => (repositoryAt(folder, dotfiles), join(folder, "app")), "echo x > a.txt"))).toEqual([
        "a.txt",
      ]);
    });

    test("PROM-3: a worktree has the rules that its repository keeps beside the files", async () => {
      const inside = (folder: string): string => {
        const run = repositoryAt(folder, { "a.txt": "a\n" });
        writeFileSync(join(folder, ".git/info/exclude"), "secret*\n");
        run("worktree", "add", "-q", `${folder}-tree`);
        return `${folder}-tree`;
      };
      expect(names(await made("main", inside, "echo x > a.txt; echo x > secret.txt"))).toEqual(["a.txt"]);
    });

    test("is refused while its repository is in the middle of a merge", async () => {
      const folder = join(server.place, "merging");
      const run = repositoryAt(folder, APP);
      const { id } = await server.client.call("createSandbox", { project: join(folder, "app") });
      await server.sh(id, "echo x > a.txt");
      writeFileSync(join(folder, ".git/MERGE_HEAD"), run("rev-parse", "HEAD"));
      await expect(server.client.call("promote", { sandbox: id })).rejects.toMatchObject({ code: "busy" });
    });
  });

  test("PROM-3: goes on to later stages without its sandbox once it lies in the folder, and ends with it before that", async () => {
    writeFileSync(
      path("vivarium.json"),
      JSON.stringify({
        stages: [
          { name: "dev", apply: "folder" },
          { name: "live", apply: { run: "echo live > live.txt" } },
        ],
      }),
    );
    await server.client.call("trust", { project: server.project });
    const first = await changed("echo one > one.txt");
    const { id } = await server.client.call("promote", { sandbox: first, to: "dev" });
    await server.client.call("removeSandbox", { sandbox: first });
    expect(await server.client.call("continuePromotion", { promotion: id, to: "live" })).toMatchObject({ state: "applied" });
    expect(readFileSync(path("live.txt"), "utf8")).toBe("live\n");
    const second = await changed("echo evil > .envrc");
    const waiting = await server.client.call("promote", { sandbox: second, to: "dev" });
    expect(waiting.state).toBe("waiting");
    await server.client.call("removeSandbox", { sandbox: second });
    await expect(
      server.client.call("continuePromotion", { promotion: waiting.id, approve: true, approver: server.approver() }),
    ).rejects.toMatchObject({
      code: "illegal_transition",
      message: expect.stringContaining("Its sandbox was removed; nothing was applied.") as string,
    });
    expect(await server.client.call("inspectPromotion", { promotion: waiting.id })).toMatchObject({ state: "discarded" });
  });
});
