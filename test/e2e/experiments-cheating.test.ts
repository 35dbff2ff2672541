/** Attempts that would rather win than solve: what they gain by it, and what is said about them. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attempt, Lab } from "../support/experiments.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MANIFEST = `${JSON.stringify({ name: "x", version: "1.0.0", scripts: { test: "sh code.sh" } })}\n`;
const HONEST = "printf 'true\\nexit 0\\n' > code.sh";

describe("an attempt that would rather win", needs("root", "btrfs"), () => {
  let server: TestServer;
  let lab: Lab;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "code.sh": "exit 1\n", "package.json": MANIFEST, ".gitignore": "ignored/\n" } });
    for (const args of [
      ["add", "."],
      ["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-q", "-m", "first"],
    ])
      execFileSync("git", args, { cwd: server.project });
    lab = new Lab(server);
  });
  afterAll(async () => server?.remove());

  test("EXP-2: by settings of what runs the checks is told, and comes after one that has none", async () => {
    const ended = await lab.run(["echo script-shell=/bin/true > .npmrc", HONEST], { checks: ["npm test"] });
    // Control: the setting does fool the check.
    expect(attempt(ended, "a")).toMatchObject({ checked: { passed: true }, flags: ["It changes how commands are run: .npmrc."] });
    expect(attempt(ended, "b")).toMatchObject({ index: ended.winner, flags: [] });
    expect(ended.reason).toContain("leaves what runs the checks untouched");
  });

  test("EXP-2: does not look small by files that are no text", async () => {
    const ended = await lab.run(["echo 'exit 0' > code.sh; head -c 100000 /dev/urandom > blob", HONEST], { checks: ["sh code.sh"] });
    expect(attempt(ended, "a").diff).toEqual({ files: 2, added: 1251, removed: 1 });
    expect(attempt(ended, "b").index).toBe(ended.winner);
  });

  test("EXP-2: has its size read right whatever its files are called", async () => {
    const line = String.raw`echo 'exit 0' > code.sh; mv package.json "$(printf ':9\t9\tx')"; echo x > "$(printf '7\t7\t')"`;
    const ended = await lab.run([line], { checks: ["sh code.sh"], pick: "none" });
    expect(attempt(ended, "a").diff).toEqual({ files: 3, added: 2, removed: 1 });
  });

  test("EXP-3: is checked again when more of it is promoted than was verified", async () => {
    const ended = await lab.run([`${HONEST}; mkdir ignored; echo x > ignored/x`], { checks: ["sh code.sh"] });
    const verified = async (include: string[] | undefined): Promise<string | null | undefined> => {
      const promotion = await server.client.call("promote", { experiment: ended.id, ...(include === undefined ? {} : { include }) });
      expect(promotion.state).toBe("applied");
      await server.client.call("undoPromotion", { promotion: promotion.id });
      return promotion.stages.find(({ name }) => name === "verified")?.reason;
    };
    expect(await verified(undefined)).toBe("The experiment verified exactly this.");
    expect(await verified(["ignored"])).toBe(null);
  });
});
