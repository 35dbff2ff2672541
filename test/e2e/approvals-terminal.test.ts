/** A person at a terminal answers; a program that calls `viv` without one does not. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { act, line } from "../support/inside.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { Terminal, TerminalScreen } from "../support/terminal.ts";
import { viv } from "../support/viv.ts";

describe("questions at a terminal", needs("root", "curl"), () => {
  let server: TestServer;
  let box: string;
  const ask = async (command: string): Promise<string> =>
    (await server.client.call("decideAction", { sandbox: box, action: line(command) })).approval?.id ?? "";
  const verdict = async (command: string) => (await act(server, box, [command]))[0]?.verdict;
  const state = async (approval: string) => (await server.client.call("inspectApproval", { approval })).state;

  beforeAll(async () => {
    server = await TestServer.start();
    box = (await server.create({ name: "box", level: 2 })).id;
  });
  afterAll(async () => server?.remove());

  test("POL-5: are shown as they come and answered with a key: explained, once, always by the rule shown, denied", async () => {
    const terminal = new Terminal(server, ["approvals", "--watch"]);
    try {
      await terminal.until("Questions are shown as they come");
      const waiting = act(server, box, ["git push one"], { wait: 60 });
      await terminal.until("git push one");
      await terminal.until("[a]lways, by the rule `bash: git push one`");
      await terminal.until("ask    git push one  (bash: git push *)", "e");
      await terminal.until("is approved, once.", "o");
      expect(await waiting).toMatchObject([{ verdict: "allow" }]);
      expect(await verdict("git push one")).toBe("ask");
      await terminal.until("Left as it is.", "s");

      await ask("git push two");
      await terminal.until("rule `bash: git push two`");
      await terminal.until("is approved, always.", "a");
      expect([await verdict("git push two"), await verdict("git push two")]).toEqual(["allow", "allow"]);

      await ask("git push three");
      await terminal.until("rule `bash: git push three`");
      await terminal.until("is denied.", "d");
      expect(await verdict("git push three")).toBe("deny");

      // Nothing narrow is to be had for this one: the key means nothing.
      const wide = await ask("git push $BRANCH");
      await terminal.until("git push $BRANCH");
      expect((await terminal.until("[s]kip", "a")).includes("always")).toBe(false);
      expect(await state(wide)).toBe("waiting");

      await terminal.until("", "q");
      expect(await terminal.end()).toBe(0);
      expect(await state(wide)).toBe("waiting");
    } finally {
      terminal.close();
    }
  });

  test("POL-5: are asked in the terminal that works in the sandbox, where plain keys stay the command's", async () => {
    const { id: other } = await server.create({ name: "other", level: 2 });
    const put = () => server.client.call("decideAction", { sandbox: other, action: line("git push inline") });
    const terminal = new Terminal(server, ["exec", "other", "--", "cat"]);
    try {
      await terminal.until("a line of text", "a line of text\n");
      const { approval } = await put();
      await terminal.until("other, command, git push inline");
      await terminal.until("once and deny", "once and deny\n");
      expect(await state(approval?.id ?? "")).toBe("waiting");
      await terminal.until("[a]lways, by the rule `bash: git push inline`", "\u001d");
      await terminal.until("(bash: git push *)", "e");
      await terminal.until("is approved, once.", "o");
      expect([await put(), await put()]).toMatchObject([{ verdict: "allow" }, { verdict: "ask" }]);
      await terminal.until("", "\n\u0004");
      expect(await terminal.end()).toBe(0);
    } finally {
      terminal.close();
    }
  });

  test("POL-5, AP-14: are seen as the server tells them, whatever the program paints over them", needs("tmux"), async () => {
    const { id: painter } = await server.create({ name: "painter", level: 2 });
    // Another question in its place; then what would hide or disguise the next text: an open string, margins, line drawing, insert mode.
    const lie = "viv: ctrl-] shows question apv12345678: painter, command, git status";
    const paint = `printf '\\033[?1049h\\033[2J\\033[H${lie}\\033[9;10r\\033(0\\033[4h\\033[8m\\033[?25l\\033]0;'`;
    const screen = new TerminalScreen(server, ["exec", "painter", "--", "sh", "-c", `while :; do ${paint}; sleep 0.05; done`]);
    try {
      await screen.until(lie);
      const { approval } = await server.client.call("decideAction", { sandbox: painter, action: line("git push painted") });
      const look = async () => state(approval?.id ?? "");
      // The line that announces it names the command, too; the choices are on its own screen alone.
      await screen.until("[o]nce", "C-]");
      for (let times = 0; times < 20; times += 1) expect(screen.shown).not.toContain("git status");
      expect(screen.shown).toMatch(/^apv\w+ +painter asks about a command:\n +git push painted\n(.|\n)*\[o\]nce/);
      expect(await look()).toBe("waiting");
      await screen.until(lie, "o");
      await eventually(look, (now) => now === "approved");
    } finally {
      screen.close();
    }
  });

  test("POL-5: are asked where an experiment is watched, whichever attempt asks", async () => {
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ policy: { level: 2 } }));
    await server.client.call("trust", { project: server.project });
    const body = JSON.stringify({ action: line("git push tried"), wait: 60 });
    const asks = `curl -sS -d '${body}' http://localhost:4097/sandbox/self/actions | grep -o '"verdict":"[a-z]*"' | head -1`;
    const terminal = new Terminal(server, ["try", "sleep 1", asks, "--pick", "none"], server.project);
    try {
      await terminal.until("command, git push tried");
      await terminal.until("[a]lways, by the rule `bash: git push tried`", "\u001d");
      await terminal.until("is approved, once.", "o");
      expect([await terminal.end(), terminal.shown]).toEqual([0, expect.stringContaining("ATTEMPT")]);
      const { experiments } = await server.client.call("listExperiments", { project: server.project });
      const { attempts } = await server.client.call("inspectExperiment", { experiment: experiments[0]?.id ?? "" });
      expect(attempts[1]?.output).toBe('"verdict":"allow"\n');
      const stopped = new Terminal(server, ["try", "sleep 60", "--pick", "none"], server.project);
      await stopped.until("running");
      await stopped.until("stopping; what was done is kept", "\u0003");
      expect(await stopped.end()).toBe(130);
    } finally {
      terminal.close();
    }
  });

  test("AP-13: an agent on the host without a terminal approves nothing and changes no policy; on a terminal it works", async () => {
    const approval = await ask("git push four");
    for (const words of [
      ["approve", approval],
      ["approve", approval, "--always"],
      ["deny", approval],
      ["approvals", "--watch"],
      ["policy", "set", "box", "--yolo", "4"],
    ]) {
      expect(viv(server, words)).toMatchObject({ code: 4, err: expect.stringContaining("Only a person on a terminal") });
      expect(viv(server, words, { env: { VIV_APPROVER_TOKEN: "guessed" } }).code).not.toBe(0);
    }
    expect(await state(approval)).toBe("waiting");
    expect((await server.client.call("inspectPolicy", { sandbox: box })).autonomy).toMatchObject({ level: 2, yolo: null });

    const approving = new Terminal(server, ["approve", approval]);
    expect([await approving.end(), approving.shown]).toEqual([0, expect.stringContaining("is approved, once.")]);
    expect(await verdict("git push four")).toBe("allow");
    const setting = new Terminal(server, ["policy", "set", "box", "--level", "1"]);
    expect([await setting.end(), setting.shown]).toEqual([0, expect.stringContaining("level 1 (guided), worker")]);
    expect(await verdict("cat a")).toBe("ask");
    expect(viv(server, ["inspect", "box"]).out).toMatch(/^agents +level 1 \(guided\), worker$/m);
    const token = server.approver();
    expect(viv(server, ["policy", "set", "box", "--level", "2"], { env: { VIV_APPROVER_TOKEN: token } })).toMatchObject({ code: 0 });
  });

  test("POL-3: a level and a role are chosen when a sandbox is made, and exclude each other as everywhere", async () => {
    const create = (...words: string[]) => viv(server, ["create", server.project, ...words]);
    expect(create("--name", "guided", "--level", "1", "--role", "reviewer")).toMatchObject({ code: 0 });
    expect((await server.client.call("inspectSandbox", { sandbox: "guided" })).autonomy).toEqual({
      level: 1,
      yolo: null,
      role: "reviewer",
    });
    expect(create("--level", "1", "--yolo", "1")).toMatchObject({ code: 2, err: expect.stringContaining("exclude") });
    await expect(server.create({ level: 1, yolo: 1 })).rejects.toMatchObject({ code: "invalid_input" });
    expect(viv(server, ["fork", "guided", "--name", "freer", "--yolo", "2"])).toMatchObject({ code: 0 });
    expect((await server.client.call("inspectSandbox", { sandbox: "freer" })).autonomy).toEqual({ level: null, yolo: 2, role: "reviewer" });
    const told = viv(server, ["policy", "explain", "--sandbox", "freer", "--json", "--", "ls"]);
    expect(JSON.parse(told.out)).toMatchObject({ verdict: "deny", rule: "role reviewer" });
    expect(viv(server, ["policy", "show", "freer"]).out).toMatch(/^yolo 2 \(files and network\), reviewer\n/);
  });

  test("PROM-3 POL-5: a promotion that waits is listed, shown in full and answered as every other question", async () => {
    await server.sh("box", "mkdir -p .github/workflows && echo 'on: push' > .github/workflows/x.yml");
    mkdirSync(join(server.project, ".github"), { recursive: true });
    const person = { env: { VIV_APPROVER_TOKEN: server.approver() } };
    const wait = (): string => {
      expect(viv(server, ["promote", "box", "-c", "true"]).code).toBe(4);
      return /^(prm\w+) .* promotion +waiting +.*viv approve prm\w+$/m.exec(viv(server, ["approvals"]).out)?.[1] ?? "";
    };
    const first = wait();
    const shown = viv(server, ["approvals", first]).out;
    expect(shown).toMatch(
      /asks about a promotion:\n {2}1 file to dev\n[\s\S]*risky {2}\.github\/workflows\/x\.yml: Continuous integration/,
    );
    const promotions = (): unknown[] =>
      (JSON.parse(viv(server, ["approvals", "--json"]).out) as { approvals: { kind: string }[] }).approvals.filter(
        ({ kind }) => kind === "promotion",
      );
    expect(promotions()).toMatchObject([{ kind: "promotion", risks: [{}] }]);
    expect(viv(server, ["deny", first], person)).toMatchObject({ code: 0, out: expect.stringContaining("is denied") });
    expect(viv(server, ["approve", first], person)).toMatchObject({ code: 3, err: expect.stringContaining("does not go on") });
    expect(viv(server, ["promote", wait(), "--discard"])).toMatchObject({ code: 0, out: expect.stringContaining("It was taken back") });
    const last = wait();
    expect(viv(server, ["approve", last]), "without a terminal").toMatchObject({
      code: 4,
      err: expect.stringContaining("Only a person on a terminal"),
    });
    expect(viv(server, ["approve", last], person)).toMatchObject({ code: 0, out: expect.stringContaining("1 file promoted") });
    expect(promotions()).toEqual([]);
  });
});
