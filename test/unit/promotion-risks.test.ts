/** What a promotion tells a person to look at, found by findRisks alone. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clean } from "../../src/interfaces/cli/text.ts";
import { parseShell } from "../../src/base/policy/shell/shell.ts";
import { commitMessage } from "../../src/work/promotion/commit-message.ts";
import { findRisks } from "../../src/work/promotion/risk.ts";
import type { Risk } from "../../src/base/schema/promotion.ts";
import { keepContent } from "../support/contents.ts";

let folder: string;
let project: string;
let contents: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-risks-"));
  [project, contents] = [join(folder, "project"), join(folder, "contents")];
  for (const each of [project, contents]) mkdirSync(each);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Changed {
  readonly path: string;
  readonly text?: string | Buffer;
  readonly before?: string;
  readonly mode?: string;
}

async function risks(...changed: Changed[]): Promise<Risk[]> {
  let next = 0;
  const side = (text: string | Buffer, mode = "100644"): { mode: string; id: string } => {
    const id = String((next += 1)).padStart(40, "0");
    keepContent(contents, id, Buffer.from(text));
    return { mode, id };
  };
  const changes = changed.map(({ path, text = "x\n", before, mode }) => ({
    path: Buffer.from(path),
    old: before === undefined ? null : side(before),
    new: side(text, mode),
  }));
  return findRisks(changes, contents, project);
}

function inReality(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), "");
  }
}

describe("COORD-6: a note of the backlog", () => {
  test("needs no look of a person under the name that the server gives it, and does under every other", async () => {
    const own = `tsk${"0a".repeat(13)}`;
    expect(await risks({ path: `.tasks/${own}.md`, text: "# Later\n" })).toEqual([]);
    for (const path of [
      `.tasks/${own}.sh`,
      `.tasks/${own}.md/run`,
      `.tasks/x.md`,
      `sub/.tasks/${own}.md`,
      `.tasks/${own.toUpperCase()}.md`,
    ])
      expect(await risks({ path }), path).toMatchObject([{ path, kind: "runs-by-itself" }]);
  });
});

describe("HG-04: a folder that git takes for a repository", () => {
  const gitPaths = (found: readonly Risk[]): string[] => found.filter(({ kind }) => kind === "git").map(({ path }) => path);

  test.each(["docs/api", "a/b/c/d", "fixtures/x.git"])("is told at %s", async (at) => {
    const found = await risks(
      { path: `${at}/HEAD`, text: "ref: refs/heads/main\n" },
      { path: `${at}/config`, text: "[core]\n\tfsmonitor = touch ran\n" },
      { path: `${at}/objects/keep` },
      { path: `${at}/refs/keep` },
      { path: `${at}/readme.md` },
    );
    expect(gitPaths(found)).toEqual([`${at}/HEAD`, `${at}/config`]);
  });

  test("does harm, as a control: git that is run in it runs what its config names", () => {
    inReality("d/objects/x", "d/refs/x");
    writeFileSync(join(project, "d/HEAD"), "ref: refs/heads/main\n");
    const ran = join(folder, "ran");
    writeFileSync(
      join(project, "d/config"),
      `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ${project}\n\tfsmonitor = touch ${ran}\n`,
    );
    spawnSync("git", ["status"], { cwd: join(project, "d") });
    expect(existsSync(ran)).toBe(true);
  });

  test("is told at the top of the project, by case, and as one that borrows from another", async () => {
    expect(gitPaths(await risks({ path: "HEAD" }, { path: "objects/x" }, { path: "refs/x" }))).toEqual(["HEAD"]);
    expect(gitPaths(await risks({ path: "d/head" }, { path: "d/Objects/x" }, { path: "d/REFS/x" }))).toEqual(["d/head"]);
    expect(gitPaths(await risks({ path: "d/HEAD" }, { path: "d/commondir" }))).toEqual(["d/HEAD", "d/commondir"]);
    const linked = await risks({ path: "d/HEAD" }, { path: "d/objects", text: "../src", mode: "120000" }, { path: "d/refs/x" });
    expect(gitPaths(linked)).toEqual(["d/HEAD"]);
  });

  test("is told when the project holds the rest of it already", async () => {
    inReality("d/HEAD", "d/objects/x", "d/refs/x");
    expect(gitPaths(await risks({ path: "d/config" }))).toEqual(["d/config"]);
    expect(gitPaths(await risks({ path: "d/hooks/post-checkout" }))).toEqual(["d/hooks/post-checkout"]);
    expect(gitPaths(await risks({ path: "d/objects/info/alternates" }))).toEqual(["d/objects/info/alternates"]);
    inReality("e/objects/x", "e/refs/x");
    expect(gitPaths(await risks({ path: "e/HEAD" }))).toEqual(["e/HEAD"]);
    inReality("f/HEAD", "f/objects/x");
    expect(gitPaths(await risks({ path: "f/refs/heads/main" }))).toEqual(["f/refs/heads/main"]);
  });

  test("is not seen in folders that lack a part of one", async () => {
    const plain = ["a/HEAD", "a/config", "b/objects/x", "b/refs/x", "b/config", "c/HEAD/objects/refs/x"];
    expect(gitPaths(await risks(...plain.map((path) => ({ path }))))).toEqual([]);
  });
});

describe("PM-10 PM-11: characters that are not seen", () => {
  const hidden = (found: readonly Risk[]): string[] => found.filter(({ kind }) => kind === "hidden-text").map(({ why }) => why);
  const unseen = [
    ["a variation selector", 0xfe01],
    ["a supplementary variation selector", 0xe0101],
    ["a tag", 0xe0041],
    ["a Hangul filler", 0x3164],
    ["a half-width Hangul filler", 0xffa0],
    ["a Hangul choseong filler", 0x115f],
    ["a Khmer inherent vowel", 0x17b4],
    ["a Mongolian selector", 0x180b],
    ["a soft hyphen", 0xad],
    ["a grapheme joiner", 0x34f],
    ["a zero width joiner", 0x200d],
    ["a right-to-left mark", 0x200f],
    ["an Arabic letter mark", 0x61c],
    ["a direction override", 0x202e],
    ["an invisible times", 0x2062],
    ["a byte order mark", 0xfeff],
    ["an interlinear annotation", 0xfff9],
    ["a musical format character", 0x1d173],
    ["a shorthand format character", 0x1bca0],
    ["a braille blank", 0x2800],
    ["a line separator", 0x2028],
    ["an unassigned ignorable", 0xe0fff],
    ["a backspace", 0x08],
    ["a control sequence", 0x9b],
  ] as const;

  test.each(unseen)("are told with line and code point: %s", async (_, code) => {
    const text = `fine\nconst x = "a${String.fromCodePoint(code)}b";\n`;
    const [why, ...more] = hidden(await risks({ path: "x.js", text }));
    expect(why).toContain(`Line 2, column 13 holds U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
    expect(more).toEqual([]);
    const named = await risks({ path: `a${String.fromCodePoint(code)}b.js` });
    expect(named.map(({ kind }) => kind)).toContain("name");
    expect(parseShell(`rm a${String.fromCodePoint(code)}b`).problems).toHaveLength(1);
    expect(clean(String.fromCodePoint(code))).toMatch(/^\\[xu]/);
    expect(commitMessage({ message: `a${String.fromCodePoint(code)}b`, stat: [], checks: [], coAuthor: undefined })).toMatch(/^a ?b\n$/);
  });

  test("are found in a file that held others before, and behind a zero byte", async () => {
    const before = "a\u200bb\n";
    expect(hidden(await risks({ path: "x", before, text: `new\n${before}` }))).toEqual([]);
    expect(hidden(await risks({ path: "x", before, text: `${before}c\u3164d\n` }))[0]).toContain("Line 2, column 2 holds U+3164");
    expect(hidden(await risks({ path: "x.js", text: "/*\0*/\na\u202eb\n" }))[0]).toContain("Line 2");
    const stray = Buffer.concat([Buffer.from([0, 0xff]), Buffer.from(`${"// much other text\n".repeat(20)}a\u202eb\n`)]);
    expect(hidden(await risks({ path: "x.js", text: stray }))[0]).toContain("Line 21");
    expect(hidden(await risks({ path: "x.png", text: Buffer.from([0x89, 0x50, 0, 0xff, 0xc2, 0xad]) }))).toEqual([]);
  });

  test("are counted, and not listed one by one", async () => {
    expect(hidden(await risks({ path: "x", text: "a\ufe00\ufe01\ufe02\ufe03" }))).toEqual([
      "Line 1, column 2 holds U+FE00, a variation selector, which is not shown; there are 3 more such characters.",
    ]);
  });

  test("are fine in emoji, in scripts that need joiners, and as the mark at the start of a file", async () => {
    const fine = ["❤️ ☺︎ 1️⃣ 👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪 ©️", "می‌خواهم", "क्‍ष", "\ufefffirst", "a\tb\r\nc\fd", "naïve 日本語\u3000ｆ"];
    for (const text of fine) expect([text, hidden(await risks({ path: "x", text }))]).toEqual([text, []]);
    expect((await risks({ path: "❤️.txt" })).map(({ kind }) => kind)).toEqual([]);
    expect(clean("❤️ 👩‍💻")).toBe("❤️ 👩‍💻");
    for (const text of ["1\ufe0f2", "👍\ufe0f\ufe0f", "👍\u{e0100}", "a\u200db", "🏴\u{e0041}\u{e0042}", "می\u200c\u200cخ"])
      expect([text, hidden(await risks({ path: "x", text })).length]).toEqual([text, 1]);
  });

  test("are told in the target of a link, too", async () => {
    expect((await risks({ path: "link", text: "a\u3164", mode: "120000" })).map(({ kind }) => kind)).toEqual(["name"]);
  });
});
