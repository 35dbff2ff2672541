/** `viv automation`, as a user types it. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Automation, Firing } from "../../src/base/schema/automation.ts";
import { ACTING } from "../support/automations.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv, type Answer } from "../support/viv.ts";

describe("viv automation", needs("root"), () => {
  let server: TestServer;
  const automation = (...words: readonly string[]): Answer => viv(server, ["automation", ...words], { cwd: server.project });
  const shown = (name: string): Automation => JSON.parse(automation("show", name, "--json").out) as Automation;

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: { "answer.txt": "41\n" } });
    const git = ["-C", server.project, "-c", "user.name=t", "-c", "user.email=t@example.com"];
    execFileSync("git", [...git, "checkout", "-q", "-b", "main"]);
    execFileSync("git", [...git, "commit", "-q", "--allow-empty", "-m", "one"]);
  });
  afterAll(async () => server?.remove());

  test.each([
    ["files", ["--files", "src/*", "--files", "docs"], { on: "files", paths: ["src/*", "docs"] }, "changes of src/*, docs"],
    [
      "cron",
      ["--cron", "0 3 * * *", "--timezone", "Europe/Berlin"],
      { on: "schedule", cron: "0 3 * * *", timezone: "Europe/Berlin" },
      "03:00 every day (Europe/Berlin)",
    ],
    ["branch", ["--branch", "main"], { on: "commit", branch: "main" }, "commits of main"],
    [
      "remote",
      ["--branch", "main", "--remote", "/nowhere.git", "--every", "1h"],
      { on: "commit", branch: "main", remote: "/nowhere.git", every: 3_600_000 },
      "commits of main at /nowhere.git",
    ],
    ["fails", ["--fails", "true", "--every", "2h"], { on: "check", command: "true", every: 7_200_000 }, "`true` to fail"],
    ["by-hand", [], undefined, "a person who starts it"],
  ] as const)("add takes the trigger %s", (name, flags, when, words) => {
    const added = automation("add", name, ...flags, "--run", "true", "--authority", "alert-only");
    expect(added).toMatchObject({ code: 0, out: `${name} waits for ${words}; it may alert-only.\n` });
    expect(shown(name).spec.when).toEqual(when);
    expect(automation("rm", name)).toMatchObject({ code: 0, out: `${name} is removed.\n` });
  });

  test("add takes a log by a path that is relative to the folder, and its bounds", () => {
    const bounds = ["--batch", "0s", "--quiet", "08:00-18:00", "--budget-night", "5", "--budget-run", "1", "--dry-run", "--together"];
    expect(automation("add", "log", "--log", "app.log", "--line", "*ERROR*", "--task", "mend it", ...bounds).code).toBe(0);
    expect(shown("log").spec).toMatchObject({
      when: { on: "log", file: join(server.project, "app.log"), line: "*ERROR*" },
      quiet: { from: "08:00", to: "18:00" },
      budget: { run: 1, night: 5 },
      batch: 0,
      dryRun: true,
      together: true,
    });
    expect(automation("show", "log").out).toContain("$5 a night");
    expect(automation("rm", "log").code).toBe(0);
  });

  test("add says in one sentence what is missing or too much", () => {
    expect(automation("add", "x")).toMatchObject({ code: 2, err: expect.stringContaining("Say what it does") });
    expect(automation("add", "x", "--log", "a", "--run", "true")).toMatchObject({ code: 2, err: expect.stringContaining("--line") });
    const two = automation("add", "x", "--webhook", "--branch", "main", "--run", "true");
    expect(two).toMatchObject({ code: 2, err: expect.stringContaining("one trigger") });
    expect(automation("add", "x", "--cron", "61 * * * *", "--run", "true").code).not.toBe(0);
  });

  test("add of a webhook prints path and secret; secret prints it again, or a new one", () => {
    const { out } = automation("add", "hook", "--webhook", "--run", "true", "--authority", "alert-only");
    const [, id = "", secret = ""] = /POST \/hooks\/(\S+)\nSecret: (\S+)/.exec(out) ?? [];
    expect(shown("hook").id).toBe(id);
    expect(automation("secret", "hook").out).toBe(`${secret}\n`);
    const renewed = automation("secret", "hook", "--renew").out;
    expect(renewed).not.toBe(`${secret}\n`);
    expect(automation("secret", "hook").out).toBe(renewed);
    expect(automation("rm", "hook").code).toBe(0);
  });

  test("ls, show, pause, resume and history tell of an automation and of what came of it", () => {
    expect(automation("ls").err).toContain("viv automation add");
    expect(automation("history").err).toContain("Nothing has fired yet.");
    automation("add", "fix", "--files", "src/*", "--run", "echo 42 > answer.txt", "--check", "test -s answer.txt");
    expect(automation("ls").out).toMatch(/^fix +active +changes of src\/\* +propose-and-wait/m);
    expect((JSON.parse(automation("ls", "--project", ".", "--json").out) as { automations: Automation[] }).automations).toHaveLength(1);
    expect(automation("pause", "fix", "--reason", "on holiday").out).toContain("fix is paused.");
    expect(automation("show", "fix").out).toMatch(/reason +on holiday/);
    expect(automation("test", "fix").out).toContain("It rests: no files are watched.");
    expect(automation("resume", "fix").out).toBe("fix is active.\n");
    expect(automation("run", "fix").code).toBe(0);
    const { firings } = JSON.parse(automation("history", "fix", "--json").out) as { firings: Firing[] };
    const [{ id, promotion } = { id: "", promotion: "" }] = firings;
    expect(firings).toMatchObject([{ state: "waiting", files: ["answer.txt"] }]);
    expect(automation("history", "fix").out).toMatch(/fix +waiting +A person started it\./);
    const one = automation("history", id.slice(0, 9));
    expect(one.out).toContain("A person started it.");
    expect(one.err).toContain("viv approve");
    expect(automation("show", "fix").out).toContain("waiting");
    expect(viv(server, ["report"]).out).toContain(`viv approve ${(promotion ?? "").slice(0, 8)}`);
    expect(automation("history", "nothing")).toMatchObject({ code: 2, err: expect.stringContaining("no automation") });
  });

  test("a look at a paused automation of commits leaves nothing behind that watches", () => {
    automation("add", "local", "--branch", "main", "--run", "true", "--authority", "alert-only");
    automation("pause", "local");
    // The answer comes once every trigger is as its automation says.
    expect(shown("local").state).toBe("paused");
    const before = watched(server);
    for (let time = 0; time < 3; time += 1) expect(automation("test", "local").out).toContain("main is at");
    expect(watched(server)).toBe(before);
  });
});

/** Folders that the server watches, as the kernel counts them. */
function watched({ pid }: TestServer): number {
  const lines = execFileSync("sh", ["-c", `cat /proc/${pid}/fdinfo/* 2>/dev/null | grep -c ^inotify || true`], { encoding: "utf8" });
  return Number(lines.trim());
}
