/** PROM-6: a sandbox's change as a branch, checked as exactly that commit, pushed, and offered as a pull request. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestForge } from "../support/forge.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LINES = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

describe("a promotion to a branch", needs("root", "btrfs"), () => {
  let server: TestServer;
  let http: GitHttp;
  let forge: TestForge;
  let env: Record<string, string>;
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: server.project, encoding: "utf8", stdio: "pipe", env: { ...process.env, ...env } });
  /** Asked of the repository itself: its server is this process, which waits for git. */
  const hasBranch = (name: string): boolean =>
    execFileSync("git", ["-C", join(server.place, "ada/shop.git"), "branch", "--list", name], { encoding: "utf8" }) !== "";

  beforeAll(async () => {
    forge = await TestForge.open("ada/shop", (branch) => hasBranch(branch));
    server = await TestServer.start({
      files: { "a.txt": LINES },
      config: { forge: { url: forge.url, token: forge.token, host: "127.0.0.1" } },
    });
    writeFileSync(join(server.place, ".gitconfig"), "[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n");
    env = { HOME: server.place, PATH: process.env["PATH"] ?? "" };
    git("add", ".");
    git("commit", "-q", "-m", "first");
    http = await GitHttp.open(server.place);
    for (const name of ["bare.git", "ada/shop.git"]) execFileSync("git", ["init", "-q", "--bare", join(server.place, name)]);
    git("remote", "add", "file", join(server.place, "bare.git"));
    git("remote", "add", "http", `${http.url}/ada/shop.git`);
  });
  afterAll(async () => {
    await server?.remove();
    await http?.close();
    await forge?.close();
  });

  async function changed(line: string): Promise<string> {
    const { id } = await server.create({ env });
    const { end, stderr } = await server.sh(id, line);
    expect(`${end?.exitCode} ${stderr}`).toBe("0 ");
    return id;
  }
  const state = (): string => git("status", "--porcelain") + git("rev-parse", "HEAD") + git("stash", "list");

  test("is made on the commit that the clone saw, without the user's edits, and pushed to a plain remote", async () => {
    writeFileSync(join(server.project, "a.txt"), `mine\n${LINES}`);
    const sandbox = await changed("sed -i s/9/nine/ a.txt");
    const before = state();
    const promotion = await server.client.call("promote", {
      sandbox,
      env,
      message: "Spell nine out",
      checks: ["grep -q nine a.txt && ! grep -q mine a.txt"],
      branch: { ticket: "T-12", push: "file", coAuthor: "Agent <agent@example.com>" },
    });
    expect(promotion).toMatchObject({ state: "applied", branch: { name: "fix/T-12-spell-nine-out" } });
    expect(state()).toBe(before);
    expect(git("show", "fix/T-12-spell-nine-out:a.txt")).toBe(LINES.replace("9", "nine"));
    expect(git("ls-remote", "file", "fix/T-12-spell-nine-out")).toContain(promotion.branch?.commit);
    expect(git("log", "-1", "--format=%B", promotion.branch?.commit ?? "")).toContain("Co-authored-by: Agent <agent@example.com>");
    git("checkout", "-q", "a.txt");
  });

  test("is not kept, and not pushed, when the checks fail on a clone of that commit", async () => {
    const sandbox = await changed("sed -i s/8/eight/ a.txt");
    const promotion = await server.client.call("promote", {
      sandbox,
      env,
      message: "Spell eight",
      checks: ["grep -q never a.txt"],
      branch: { push: "file" },
    });
    expect(promotion).toMatchObject({ state: "failed", branch: null });
    expect(git("branch", "--list", "fix/*eight*") + git("ls-remote", "--heads", "file", "*eight*")).toBe("");
  });

  test("keeps the commits made inside, pushes over HTTP and opens one pull request", async () => {
    const sandbox = await changed(
      "git config user.name Inside; git config user.email i@example.com; sed -i s/1/one/ a.txt; git commit -qam one; sed -i s/2/two/ a.txt; git commit -qam two",
    );
    const promotion = await server.client.call("promote", {
      sandbox,
      env,
      message: "Spell one and two",
      branch: { kind: "feat", push: "http", pullRequest: true, keepCommits: true },
    });
    expect(promotion).toMatchObject({ state: "applied", branch: { name: "feat/spell-one-and-two" }, plan: { notes: [] } });
    expect(git("log", "--format=%s", "HEAD..feat/spell-one-and-two")).toBe("two\none\n");
    expect(forge.pulls).toMatchObject([{ title: "Spell one and two", head: { ref: "feat/spell-one-and-two" } }]);
    expect(promotion.branch?.pullRequest).toBe(forge.pulls[0]?.html_url);
    expect(JSON.stringify(promotion)).not.toContain(forge.token);
  });

  test("is taken back by removing it, and an undo without an id says so instead of undoing an earlier promotion", async () => {
    const undo = (): Promise<unknown> => server.client.call("undoPromotion", { project: server.project });
    await expect(undo()).rejects.toMatchObject({
      code: "illegal_transition",
      remedy: expect.stringMatching(/`git branch -D feat\/spell-one-and-two`.*`git push http --delete feat\/spell-one-and-two`/),
    });
    const written = await server.client.call("promote", { sandbox: await changed("echo new > undone.txt"), env });
    expect(written).toMatchObject({ state: "applied" });
    const branched = await server.client.call("promote", {
      sandbox: await changed("git config user.name x; git config user.email i@x; echo x > c; git add c; git commit -qm c"),
      env,
      message: "Later",
      branch: {},
    });
    expect(branched.plan?.notes).toMatchObject([expect.stringContaining("--branch --keep-commits")]);
    await expect(undo()).rejects.toMatchObject({
      remedy: expect.stringMatching(new RegExp(`\`git branch -D ${branched.branch?.name ?? "?"}\`.*\`viv undo ${written.id}\``)),
    });
    expect(await server.client.call("undoPromotion", { promotion: written.id })).toMatchObject({ state: "applied" });
    expect(git("status", "--porcelain")).toBe("");
  });

  test("opens a sandbox on the merged state where the change rests on edits that are not committed", async () => {
    writeFileSync(join(server.project, "a.txt"), LINES.replace("5", "V"));
    const sandbox = await changed("sed -i s/V/VVV/ a.txt");
    const promotion = await server.client.call("promote", { sandbox, env, message: "More V", branch: {} });
    expect(promotion).toMatchObject({ state: "failed", branch: null, plan: { conflicts: [{ path: "a.txt" }] } });
    const name = /sandbox (\S+) holds/.exec(promotion.reason ?? "")?.[1] ?? "";
    expect((await server.sh(name, "cat a.txt")).stdout).toContain("<<<<<<<");
    git("checkout", "-q", "a.txt");
  });
});
