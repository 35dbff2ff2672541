/** PROM-2 to PROM-5: what a promotion refuses, asks for, takes back, and keeps. */
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LINES = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

describe("a promotion", needs("root", "btrfs"), () => {
  let server: TestServer;
  const path = (name: string): string => join(server.project, name);
  const read = (name: string): string => readFileSync(path(name), "utf8");
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: server.project, encoding: "utf8", stdio: "pipe" });
  const changed = async (line: string): Promise<string> => {
    const { id } = await server.create();
    await server.sh(id, line);
    return id;
  };
  const stage = (promotion: OutputOf<"promote">, name: string): unknown => promotion.stages.find((one) => one.name === name)?.state;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "a.txt": LINES, "b.txt": "b\n" } });
    git("add", ".");
    git("commit", "-q", "-m", "first");
  });
  afterAll(async () => server?.remove());
  beforeEach(async () => {
    git("reset", "-q", "--hard", "HEAD");
    git("clean", "-qfdx");
  });

  test("PROM-2: merges with what moved in reality, and keeps edits that are not committed", async () => {
    const sandbox = await changed("sed -i s/9/nine/ a.txt");
    writeFileSync(path("a.txt"), `one\n${LINES.slice(2)}`);
    writeFileSync(path("mine.txt"), "mine\n");
    const promotion = await server.client.call("promote", { sandbox });
    expect(promotion).toMatchObject({ state: "applied", plan: { moved: true } });
    expect(read("a.txt")).toBe("one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    expect(read("mine.txt")).toBe("mine\n");
  });

  test("PM-08: overlapping edits are a conflict and nothing is applied", async () => {
    const sandbox = await changed("sed -i s/5/five/ a.txt; echo other > other.txt");
    writeFileSync(path("a.txt"), LINES.replace("5", "FIVE"));
    const promotion = await server.client.call("promote", { sandbox });
    expect(promotion).toMatchObject({ state: "failed", plan: { conflicts: [{ path: "a.txt", kind: "content" }] } });
    expect(promotion.reason).toContain("a.txt");
    expect(read("a.txt")).toBe(LINES.replace("5", "FIVE"));
    expect(existsSync(path("other.txt"))).toBe(false);
  });

  test("leaves index, HEAD and stash alone", async () => {
    writeFileSync(path("b.txt"), "staged\n");
    git("add", "b.txt");
    const [index, head] = [git("diff", "--cached"), git("rev-parse", "HEAD")];
    const sandbox = await changed("sed -i s/5/five/ a.txt; git -c user.name=x -c user.email=x@x commit -qam inside");
    const promotion = await server.client.call("promote", { sandbox });
    expect(promotion.state).toBe("applied");
    expect(promotion.plan?.notes.join()).toContain("Commits made inside are not carried");
    expect(git("diff", "--cached")).toBe(index);
    expect(git("rev-parse", "HEAD")).toBe(head);
  });

  test("is refused in the middle of a merge, and fine on a detached HEAD", async () => {
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    writeFileSync(path(".git/MERGE_HEAD"), git("rev-parse", "HEAD"));
    await expect(server.client.call("promote", { sandbox })).rejects.toMatchObject({ code: "busy" });
    rmSync(path(".git/MERGE_HEAD"));
    git("checkout", "-q", "--detach");
    expect(await server.client.call("promote", { sandbox })).toMatchObject({ state: "applied" });
    git("checkout", "-q", "-");
  });

  test("PROM-5 PM-06: what is risky waits for a person, and goes on once approved", async () => {
    const sandbox = await changed("echo 'curl evil' > .envrc; ln -s /etc/passwd out; echo '{}' > vivarium.json; echo fine > fine.txt");
    const promotion = await server.client.call("promote", { sandbox });
    expect(promotion.state).toBe("waiting");
    expect(promotion.plan?.risks.map(({ path: at, kind }) => `${at} ${kind}`).toSorted()).toEqual([
      ".envrc runs-by-itself",
      "out link-out",
      "vivarium.json config",
    ]);
    for (const approver of [undefined, "guessed"])
      await expect(server.client.call("continuePromotion", { promotion: promotion.id, approve: true, approver })).rejects.toMatchObject({
        code: "unauthorized",
      });
    expect(existsSync(path("fine.txt"))).toBe(false);
    const approved = await server.client.call("continuePromotion", { promotion: promotion.id, approve: true, approver: server.approver() });
    expect(approved).toMatchObject({ state: "applied" });
    expect(read("fine.txt")).toBe("fine\n");
  });

  describe("that waits is a question like any other", () => {
    const waiting = async (): Promise<OutputOf<"promote">> => {
      const sandbox = await changed("echo 'curl evil' > .envrc; echo fine > fine.txt");
      return server.client.call("promote", { sandbox });
    };
    const listed = async (id: string): Promise<unknown> =>
      (await server.client.call("listApprovals", {})).approvals.find((one) => one.id === id);
    const answer = (approval: string, given: "once" | "deny"): Promise<unknown> =>
      server.client.call("answerApproval", { approval, answer: given, approver: server.approver() });

    test("POL-5: it is listed and shown with its risks, and approved", async () => {
      const { id } = await waiting();
      const asked = { id, kind: "promotion", state: "waiting", deadline: null, risks: [{ path: ".envrc", kind: "runs-by-itself" }] };
      expect(await listed(id)).toMatchObject({ ...asked, target: "2 files to dev" });
      expect(await server.client.call("inspectApproval", { approval: id })).toMatchObject(asked);
      await expect(server.client.call("answerApproval", { approval: id, answer: "once", approver: "guessed" })).rejects.toMatchObject({
        code: "unauthorized",
      });
      await expect(
        server.client.call("answerApproval", { approval: id, answer: "always", approver: server.approver() }),
      ).rejects.toMatchObject({ code: "invalid_input" });
      expect(existsSync(path("fine.txt"))).toBe(false);
      expect(await answer(id, "once")).toMatchObject({ id, state: "used" });
      expect([await listed(id), read("fine.txt")]).toEqual([undefined, "fine\n"]);
      await expect(answer(id, "once")).rejects.toMatchObject({ code: "illegal_transition" });
    });

    test("POL-5: it is denied, or taken back by who asked, and does not go on then", async () => {
      const [one, other] = [await waiting(), await waiting()];
      expect(await answer(one.id, "deny")).toMatchObject({ id: one.id, state: "denied" });
      expect(await server.client.call("discardPromotion", { promotion: other.id })).toMatchObject({ state: "discarded" });
      for (const { id } of [one, other]) {
        expect(await listed(id)).toBeUndefined();
        expect(await server.client.call("inspectPromotion", { promotion: id })).toMatchObject({ state: "discarded" });
        await expect(answer(id, "once")).rejects.toMatchObject({ code: "illegal_transition" });
        await expect(server.client.call("discardPromotion", { promotion: id })).rejects.toMatchObject({ code: "illegal_transition" });
      }
      expect(existsSync(path("fine.txt"))).toBe(false);
      const { records } = await server.client.call("listAudit", { limit: 1000 });
      const ends = records.filter(({ action }) => action === "promotion.end").slice(-2);
      expect(ends.map(({ label, reason }) => `${label} ${reason}`)).toEqual([
        "DENIED A person denied it; nothing was applied.",
        "DENIED It was taken back; nothing was applied.",
      ]);
    });

    test("POL-5: it ends with its sandbox", async () => {
      const { id, sandbox } = await waiting();
      await server.client.call("removeSandbox", { sandbox: sandbox ?? "" });
      expect(await listed(id)).toBeUndefined();
      expect(await server.client.call("inspectPromotion", { promotion: id })).toMatchObject({
        state: "discarded",
        reason: "Its sandbox was removed; nothing was applied.",
      });
    });

    test("POL-5: a stage that waits once the change is written is denied, and the change stays", async () => {
      const stages = [
        { name: "dev", apply: "folder" },
        { name: "live", apply: { run: "echo live > live.txt" }, approval: "ask" },
      ];
      writeFileSync(path("vivarium.json"), JSON.stringify({ stages }));
      await server.client.call("trust", { project: server.project });
      const sandbox = await changed("sed -i s/5/five/ a.txt");
      const { id } = await server.client.call("promote", { sandbox, to: "live" });
      expect(await listed(id)).toMatchObject({ target: "1 file to live" });
      expect(await answer(id, "deny")).toMatchObject({ state: "denied" });
      expect(await listed(id)).toBeUndefined();
      const { state, stages: ended } = await server.client.call("inspectPromotion", { promotion: id });
      expect([state, ended.map((one) => one.state), existsSync(path("live.txt"))]).toEqual(["applied", ["passed", "failed"], false]);
    });
  });

  test("takes only the paths that were asked for, and ignored ones that were named", async () => {
    writeFileSync(path(".gitignore"), "out/\n");
    const sandbox = await changed("echo x > x.txt; echo y > y.txt; mkdir out; echo o > out/o");
    const only = await server.client.call("planPromotion", { sandbox, only: ["x.txt"] });
    expect(only.changes.map((change) => change.path)).toEqual(["x.txt"]);
    const more = await server.client.call("planPromotion", { sandbox, include: ["out"] });
    expect(more.changes.map((change) => change.path)).toEqual(["out/o", "x.txt", "y.txt"]);
  });

  test("PROM-3: checks judge the change alone on a fresh clone before it is written", async () => {
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    const bad = await server.client.call("promote", { sandbox, checks: ["grep -q nothing a.txt"] });
    expect(bad.state).toBe("failed");
    expect(stage(bad, "verified")).toBe("failed");
    expect(read("a.txt")).toBe(LINES);
    const good = await server.client.call("promote", { sandbox, checks: ["grep -q five a.txt"] });
    expect(good.state).toBe("applied");
    expect(stage(good, "verified")).toBe("passed");
  });

  test("PROM-3: a stage that fails in reality rolls the folder back and leaves later ones untouched", async () => {
    // Reality has a file that no clone sees.
    writeFileSync(path("vivarium.json"), JSON.stringify({ capture: { exclude: ["only-here"] } }));
    writeFileSync(path("only-here"), "");
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    const promotion = await server.client.call("promote", { sandbox, to: "dev-tested", checks: ["test ! -e only-here"] });
    expect(promotion.state).toBe("failed");
    expect(promotion.stages.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "sandbox passed",
      "verified passed",
      "dev rolled-back",
      "dev-tested rolled-back",
      "staging pending",
      "production pending",
    ]);
    expect(read("a.txt")).toBe(LINES);
  });

  test("PROM-5 PM-06: a file that a line runs on this machine is risky, and the line waits until the new content is trusted", async () => {
    const ran = join(server.place, "ran");
    writeFileSync(path("deploy.sh"), `echo old >> ${ran}\n`);
    const stages = [
      { name: "dev", apply: "folder", after: ["sh deploy.sh"] },
      { name: "live", apply: { run: "sh deploy.sh" } },
    ];
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages }));
    const trusted = await server.client.call("trust", { project: server.project });
    expect(trusted.runs).toEqual(["deploy.sh"]);
    const sandbox = await changed(`echo 'echo evil >> ${ran}' > deploy.sh`);
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(plan.risks).toMatchObject([{ path: "deploy.sh", kind: "runs-by-itself", why: expect.stringContaining("viv trust") as string }]);
    const { id, state, reason } = await server.client.call("promote", { sandbox, to: "live", allowRisky: true });
    expect([state, reason]).toEqual(["applied", expect.stringContaining("(deploy.sh) is not what was trusted")]);
    const goOn = (): Promise<OutputOf<"promote">> =>
      server.client.call("continuePromotion", { promotion: id, to: "live", approve: true, approver: server.approver() });
    expect((await goOn()).stages.map((one) => one.state)).toEqual(["waiting", "pending"]);
    expect([read("deploy.sh"), existsSync(ran)]).toEqual([`echo evil >> ${ran}\n`, false]);
    await server.client.call("trust", { project: server.project });
    expect((await goOn()).stages.map((one) => one.state)).toEqual(["passed", "passed"]);
    expect(readFileSync(ran, "utf8")).toBe("evil\nevil\n");
  });

  test("PROM-5 PM-06: a change that takes the config away does not make its lines run what it changed", async () => {
    const ran = join(server.place, "ran-without");
    writeFileSync(path("deploy.sh"), "true\n");
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages: [{ name: "dev", apply: "folder", after: ["sh deploy.sh"] }] }));
    await server.client.call("trust", { project: server.project });
    const sandbox = await changed(`echo 'echo evil >> ${ran}' > deploy.sh; rm vivarium.json`);
    const { reason } = await server.client.call("promote", { sandbox, allowRisky: true });
    expect([reason, existsSync(ran)]).toEqual([expect.stringContaining("is not what was trusted"), false]);
  });

  test("PROM-5 PM-06: lines of a branch stage wait, too, when what they run changed since it was trusted", async () => {
    const ran = join(server.place, "ran-branch");
    writeFileSync(path("notify.sh"), "true\n");
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages: [{ name: "review", apply: "branch", after: ["sh notify.sh"] }] }));
    await server.client.call("trust", { project: server.project });
    writeFileSync(path("notify.sh"), `echo evil >> ${ran}\n`);
    const sandbox = await changed("echo more >> a.txt");
    const { stages } = await server.client.call("promote", { sandbox, to: "review" });
    expect([stages.map((one) => one.state), existsSync(ran)]).toEqual([["waiting"], false]);
  });

  test("PROM-3: the example of stages in docs/CONFIG.md runs as it says there", async () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/CONFIG.md"), "utf8");
    const [, example = ""] = /### Stages[^]*?```jsonc\n([^]*?)```/.exec(page) ?? [];
    const log = join(server.place, "stages.log");
    for (const script of ["migrate", "deploy", "smoke"]) writeFileSync(path(`${script}.sh`), `echo "$VIV_STAGE: ${script} $*" >> ${log}\n`);
    writeFileSync(path("test.sh"), "grep -q five a.txt\n");
    writeFileSync(path("vivarium.json"), example);
    await server.client.call("trust", { project: server.project });
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    const first = await server.client.call("promote", { sandbox, to: "production" });
    expect(first.stages.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "verified passed",
      "dev passed",
      "staging passed",
      "production waiting",
    ]);
    await server.client.call("answerApproval", { approval: first.id, answer: "once", approver: server.approver() });
    const lines = ["dev: migrate ", "staging: deploy staging", "staging: smoke staging", "production: deploy production"];
    expect(readFileSync(log, "utf8").trimEnd().split("\n")).toEqual(lines);
    await server.client.call("undoPromotion", { promotion: first.id });
    expect(readFileSync(log, "utf8").trimEnd().split("\n").slice(lines.length)).toEqual([
      "production: deploy production --back",
      "staging: deploy staging --back",
    ]);
    expect(read("a.txt")).toBe(LINES);
  });

  test("PROM-3: stages of a trusted config deploy, wait for approvals and roll back", async () => {
    const stages = [
      { name: "dev", apply: "folder", after: ["echo after > after.txt"] },
      { name: "staging", apply: { run: "echo $VIV_STAGE > staged.txt" }, rollback: "rm staged.txt" },
      { name: "production", apply: { run: "echo live > live.txt; exit 3" }, approval: "ask", rollback: "rm live.txt" },
    ];
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages }));
    await server.client.call("trust", { project: server.project });
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    const first = await server.client.call("promote", { sandbox, to: "production" });
    expect(first).toMatchObject({ state: "applied", reason: "Stage production waits for an approval." });
    expect([read("after.txt"), read("staged.txt"), existsSync(path("live.txt"))]).toEqual(["after\n", "staging\n", false]);
    const second = await server.client.call("continuePromotion", { promotion: first.id, approve: true, approver: server.approver() });
    expect(second.stages.map(({ state }) => state)).toEqual(["passed", "passed", "rolled-back"]);
    expect(second.state).toBe("applied");
    expect(existsSync(path("live.txt"))).toBe(false);
    expect(existsSync(path("staged.txt"))).toBe(true);
    await server.client.call("undoPromotion", { promotion: first.id });
    expect([existsSync(path("staged.txt")), read("a.txt")]).toEqual([false, LINES]);
  });

  test("a config that no person trusted has no stages of its own", async () => {
    writeFileSync(path("vivarium.json"), JSON.stringify({ stages: [{ name: "evil", apply: { run: "touch evil" } }] }));
    const sandbox = await changed("sed -i s/5/five/ a.txt");
    await expect(server.client.call("promote", { sandbox, to: "evil" })).rejects.toMatchObject({ code: "invalid_input" });
    expect(existsSync(path("evil"))).toBe(false);
  });

  test("PROM-4: an undo merges with later edits, and refuses where it can't", async () => {
    const sandbox = await changed("sed -i s/5/five/ a.txt; echo new > new.txt");
    const { id } = await server.client.call("promote", { sandbox });
    appendFileSync(path("a.txt"), "10\n");
    const undo = await server.client.call("undoPromotion", { promotion: id });
    expect(undo.state).toBe("applied");
    expect([read("a.txt"), existsSync(path("new.txt"))]).toEqual([`${LINES}10\n`, false]);
    git("checkout", "-q", "a.txt");
    const again = await server.client.call("promote", { sandbox });
    writeFileSync(path("a.txt"), read("a.txt").replace("five", "5 or so"));
    const refused = await server.client.call("undoPromotion", { promotion: again.id });
    expect(refused).toMatchObject({ state: "failed", plan: { conflicts: [{ path: "a.txt" }] } });
    expect([read("a.txt").includes("5 or so"), existsSync(path("new.txt"))]).toEqual([true, true]);
  });

  test("PM-14: two at once are serialised, and the second sees the first", async () => {
    const [one, two] = await Promise.all([changed("sed -i s/5/five/ a.txt"), changed("sed -i s/5/FIVE/ a.txt")]);
    const results = await Promise.all([one, two].map((sandbox) => server.client.call("promote", { sandbox })));
    expect(results.map(({ state }) => state).toSorted()).toEqual(["applied", "failed"]);
    const loser = results.find(({ state }) => state === "failed");
    expect(loser?.plan?.conflicts).toMatchObject([{ path: "a.txt" }]);
  });

  test("PROM-5: files of a submodule are files, and one that is on another commit is risky", async () => {
    const module = join(server.place, "module");
    execFileSync("git", ["init", "-q", module]);
    writeFileSync(join(module, "m.txt"), "m\n");
    for (const args of [
      ["add", "."],
      ["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-q", "-m", "m"],
    ])
      execFileSync("git", ["-C", module, ...args]);
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", module, "lib");
    git("commit", "-q", "-m", "with a submodule");
    const files = await changed("echo more >> lib/m.txt");
    const plain = await server.client.call("planPromotion", { sandbox: files });
    expect([plain.changes.map((change) => change.path), plain.risks]).toEqual([["lib/m.txt"], []]);
    const moved = await changed("cd lib && echo more >> m.txt && git -c user.name=x -c user.email=x@x commit -qam moved");
    const plan = await server.client.call("planPromotion", { sandbox: moved });
    expect(plan.risks).toMatchObject([{ path: "lib", kind: "submodule" }]);
    git("reset", "-q", "--hard", "HEAD~1");
    rmSync(path("lib"), { recursive: true, force: true });
  });

  test("nothing to promote is said", async () => {
    const sandbox = await changed("true");
    expect(await server.client.call("promote", { sandbox })).toMatchObject({ state: "failed", reason: "There is nothing to promote." });
  });
});
