/** What the command line does by itself: words, help, tables, completion, copies. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findPaths, preparePaths } from "../../src/base/config/paths.ts";
import { COMMON_OPTIONS, command, type CommandDeclaration } from "../../src/interfaces/cli/command.ts";
import { snapshotTree } from "../../src/interfaces/cli/commands/snapshots.ts";
import { completionScript, SHELLS } from "../../src/interfaces/cli/completion.ts";
import { DetachKeys } from "../../src/interfaces/cli/detach-keys.ts";
import { renderDocs } from "../../src/interfaces/cli/docs.ts";
import { printCommandHelp } from "../../src/interfaces/cli/command-help.ts";
import { nearest } from "../../src/interfaces/cli/nearest.ts";
import { parse } from "../../src/interfaces/cli/parse.ts";
import { commandNames, loadAll } from "../../src/interfaces/cli/registry.ts";
import { Screen } from "../../src/interfaces/cli/screen.ts";
import { table } from "../../src/interfaces/cli/table.ts";
import { TerminalFilter } from "../../src/interfaces/cli/terminal-filter.ts";
import { clean, cleanJson, duration, width } from "../../src/interfaces/cli/text.ts";
import type { Snapshot } from "../../src/base/schema/sandbox.ts";

const everything: CommandDeclaration[] = await loadAll();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-cli-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sample = command({
  name: "sample",
  summary: "A sample",
  examples: [],
  options: {
    env: { type: "list", short: "e", value: "NAME=VALUE", summary: "Variables" },
    quiet: { type: "flag", short: "q", summary: "Quiet" },
    memory: { type: "size", value: "SIZE", summary: "Memory" },
    idle: { type: "duration", value: "TIME", summary: "Idle" },
  },
  positionals: [
    { name: "SANDBOX", summary: "Name" },
    { name: "COMMAND", summary: "Command", rest: "command-line" },
  ],
  run: async () => undefined,
});

describe("words", () => {
  test("become typed options, positionals and a command line", () => {
    const parsed = parse(sample, ["-qe", "A=1", "--env=B=2", "--memory", "1.5g", "--idle", "90s", "box", "--", "ls", "-l", "--json"]);
    expect(parsed.options).toEqual({ env: ["A=1", "B=2"], quiet: true, memory: 1.5 * 1024 ** 3, idle: 90_000 });
    expect(parsed).toMatchObject({ positionals: ["box"], rest: ["ls", "-l", "--json"], json: false });
  });

  test("after the sandbox belong to the command line, with or without --", () => {
    expect(parse(sample, ["box", "ls", "-l", "--json"]).rest).toEqual(["ls", "-l", "--json"]);
    expect(parse(sample, ["-e", "A=1", "box", "--", "--", "-x"]).rest).toEqual(["--", "-x"]);
  });

  test.each([
    [["--quite", "box", "ls"], 'has no option "--quite". Did you mean --quiet?'],
    [["-x", "box", "ls"], 'has no option "-x".'],
    [["--memory", "much", "box", "ls"], "--memory takes a size such as 512m or 4g"],
    [["--idle", "5", "box", "ls"], "--idle takes a duration"],
    [["--memory"], "--memory needs a value."],
    [["--quiet=yes", "box", "ls"], "--quiet takes no value."],
    [["box"], "needs COMMAND."],
    [[], "needs SANDBOX."],
  ])("that are wrong get one sentence: %j", (words, sentence) => {
    expect(() => parse(sample, words)).toThrow(expect.objectContaining({ code: "usage", message: expect.stringContaining(sentence) }));
  });

  test("that are mistyped find the command that was meant", () => {
    expect(nearest("exce", commandNames())).toBe("exec");
    expect(nearest("statsu", commandNames())).toBe("status");
    expect(nearest("snap", commandNames())).toBeUndefined();
    expect(nearest("zzzzzz", commandNames())).toBeUndefined();
  });
});

describe("help and docs", () => {
  test.each(everything.map((each) => [each.name, each] as const))(
    "of %s name its usage, every option and an example",
    (name, declaration) => {
      const text: string[] = [];
      const sink = new Writable({
        write(chunk: Buffer, _encoding, done) {
          text.push(chunk.toString());
          done();
        },
      });
      printCommandHelp(new Screen({ stdout: sink, stderr: sink, env: {}, json: false }), declaration);
      const help = text.join("");
      expect(help).toContain(`viv ${name}`);
      for (const option of Object.keys({ ...declaration.options, ...COMMON_OPTIONS })) expect(help).toContain(`--${option}`);
      expect(declaration.examples.length).toBeGreaterThan(0);
      expect(help).not.toContain("\x1b");
    },
  );

  test("have one command per module name, with options whose letters do not clash", () => {
    expect(everything.map((each) => each.name)).toEqual(commandNames());
    for (const { options } of everything) {
      const letters = Object.values({ ...options, ...COMMON_OPTIONS }).flatMap((option) =>
        "short" in option && option.short !== undefined ? [option.short] : [],
      );
      expect(new Set(letters).size).toBe(letters.length);
    }
  });

  test("are in docs/CLI.md as the declarations render them", async () => {
    const written = readFileSync(join(import.meta.dirname, "..", "..", "docs", "CLI.md"), "utf8");
    expect(written, "run `node src/interfaces/cli/docs.ts > docs/CLI.md`").toBe(await renderDocs());
  });

  test.each(SHELLS.filter((shell) => spawnSync(shell, ["-c", ":"]).status === 0))("give a completion script that %s reads", (shell) => {
    expect(spawnSync(shell, ["-n"], { input: completionScript(shell), encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("text from a sandbox", () => {
  test("is shown with escapes for control, direction and invisible characters", () => {
    expect(clean("a\x1b[31mb\nc\u202ed\u009be\u200b")).toBe("a\\x1b[31mb\\nc\\u{202e}d\\x9be\\u{200b}");
    expect(clean("日本語 naïve 🦎")).toBe("日本語 naïve 🦎");
    expect(clean("\ud800")).toBe("\\u{d800}");
  });

  test("is the same value in JSON, without a byte that a terminal obeys", () => {
    const value = { name: "a\u009b31m\u202e\u{e0041}\n" };
    const text = cleanJson(value, 2);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).not.toMatch(/[\u007f-\u009f\u202e]/);
  });

  test("stays aligned in tables, wide and combining characters too", () => {
    const rows = [
      { name: "日本語", state: "ok" },
      { name: "e\u0301a", state: "ok" },
      { name: "x\x1b[2J", state: "ok" },
    ];
    const lines = table(rows, [
      { title: "NAME", value: (row) => row.name },
      { title: "STATE", value: (row) => row.state },
    ]);
    const columns = lines.map((line) => width(line.slice(0, line.search(/(STATE|ok)$/))));
    expect(new Set(columns).size).toBe(1);
    expect(lines.join("")).not.toContain("\x1b");
  });

  test("is cut where the terminal is narrow, and numbers keep to the right", () => {
    const lines = table(
      [
        { path: "a/very/long/path/indeed", size: 5 },
        { path: "b", size: 12345 },
      ],
      [
        { title: "PATH", value: (row) => row.path, shrinks: true },
        { title: "SIZE", value: (row) => String(row.size), right: true },
      ],
      { columns: 20 },
    );
    expect(lines).toEqual(["PATH            SIZE", "a/very/long/…      5", "b              12345"]);
  });

  test("loses what moves cursors, sets titles or fills clipboards, and keeps colours, in whatever pieces it comes", () => {
    const hostile = Buffer.from("a\x1b[31mred\x1b[0m\x1b[2J\x1b]52;c;AAAA\x07b\x1bP1$r\x1b\\c\u009b2Jd\x1b[?1049hé\r\n\x08");
    const whole = new TerminalFilter().pass(hostile).toString();
    expect(whole).toBe("a\x1b[31mred\x1b[0mbc2Jdé\r\n");
    const filter = new TerminalFilter();
    const pieces = [...hostile].map((byte) => filter.pass(Buffer.of(byte)));
    expect(Buffer.concat(pieces).toString()).toBe(whole);
  });

  test("of a duration is in units one reads", () => {
    expect([2.44, 740, 61_000, 3_600_000, 90_000_000].map((ms) => duration(ms))).toEqual([
      "2.4 ms",
      "740 ms",
      "1 min 1 s",
      "1 h",
      "1 d 1 h",
    ]);
  });
});

describe("detach keys", () => {
  test("are found across pieces, and a lone ctrl-P is passed on", () => {
    const keys = new DetachKeys();
    expect(keys.pass(Buffer.from("a\x10"))).toEqual({ data: Buffer.from("a"), detach: false });
    expect(keys.pass(Buffer.from("b"))).toEqual({ data: Buffer.from("\x10b"), detach: false });
    expect(keys.pass(Buffer.from("\x10"))).toMatchObject({ detach: false });
    expect(keys.pass(Buffer.from("\x11rest"))).toEqual({ data: Buffer.alloc(0), detach: true });
  });
});

describe("snapshots", () => {
  test("are a tree, also when a parent is gone", () => {
    const snapshot = (id: string, parent: string | null, minute: number): Snapshot => ({
      id,
      name: id,
      sandbox: "s",
      parent,
      current: false,
      createdAt: `2026-01-01T00:0${minute}:00Z`,
      expiresAt: null,
      frozenMs: 1,
    });
    const lines = snapshotTree([
      snapshot("c", "a", 3),
      snapshot("a", null, 1),
      snapshot("b", "a", 2),
      snapshot("d", "b", 4),
      snapshot("e", "gone", 5),
    ]);
    expect(lines.map((line) => line.label)).toEqual(["a", "├─ b", "│  └─ d", "└─ c", "e"]);
  });
});

describe("the folders of Vivarium", () => {
  test("are the machine's for root, the user's own for others, and follow VIV_HOME and VIV_CONFIG", () => {
    expect(findPaths({}, 0)).toMatchObject({
      home: "/var/lib/vivarium",
      socket: "/var/lib/vivarium/viv.sock",
      config: "/etc/vivarium/config.json",
    });
    expect(findPaths({ HOME: "/home/me" }, 1000)).toMatchObject({
      home: "/home/me/.local/state/vivarium",
      config: "/home/me/.config/vivarium/config.json",
    });
    expect(findPaths({ HOME: "/home/me", XDG_STATE_HOME: "/s", XDG_CONFIG_HOME: "relative" }, 1000)).toMatchObject({
      home: "/s/vivarium",
      config: "/home/me/.config/vivarium/config.json",
    });
    expect(findPaths({ VIV_HOME: "/a", VIV_CONFIG: "/b.json" }, 1000)).toMatchObject({
      home: "/a",
      log: "/a/server.log",
      config: "/b.json",
    });
  });

  test("lie where links above them lead, since mounts and masks speak of real places", () => {
    mkdirSync(join(folder, "real"));
    symlinkSync("real", join(folder, "way"));
    expect(findPaths({ VIV_HOME: join(folder, "way/later/state") }, 1000).home).toBe(join(folder, "real/later/state"));
  });

  test("give a socket a short path when the usual one is too long, one per state folder", () => {
    const long = `/tmp/${"x".repeat(120)}`;
    const one = findPaths({ VIV_HOME: long }, 1000).socket;
    expect(one).toMatch(/^\/tmp\/viv-1000\/[0-9a-f]{16}\.sock$/);
    expect(findPaths({ VIV_HOME: `${long}y` }, 1000).socket).not.toBe(one);
    expect(findPaths({ VIV_HOME: long, XDG_RUNTIME_DIR: "/run/user/1000" }, 1000).socket).toMatch(/^\/run\/user\/1000\/vivarium\//);
  });

  test("are refused when others can write to them or they are links", () => {
    const open = join(folder, "open");
    mkdirSync(open);
    spawnSync("chmod", ["777", open]);
    expect(() => preparePaths(findPaths({ VIV_HOME: open }))).toThrow(expect.objectContaining({ code: "denied" }));
    symlinkSync(folder, join(folder, "link"));
    expect(() => preparePaths(findPaths({ VIV_HOME: join(folder, "link") }))).toThrow(expect.objectContaining({ code: "denied" }));
  });
});
