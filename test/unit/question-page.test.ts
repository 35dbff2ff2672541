/** A question on a terminal that a program also writes to. */
import { Writable } from "node:stream";
import { describe, expect, test, vi } from "vitest";
import { HeldOutput } from "../../src/interfaces/cli/held-output.ts";
import { LiveLines } from "../../src/interfaces/cli/live-lines.ts";
import { drawScreen, paginate } from "../../src/interfaces/cli/question-page.ts";
import { Screen } from "../../src/interfaces/cli/screen.ts";
import { TerminalModes } from "../../src/interfaces/cli/terminal-modes.ts";
import { width } from "../../src/interfaces/cli/text.ts";

const SIZE = { columns: 40, rows: 10 };

describe("the page of a question", () => {
  test("holds every word: what does not fit on one is on the next", () => {
    const target = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ");
    const pages = paginate(["apv1  box asks:", `  ${target}`, "", "[o]nce"], SIZE);
    expect(pages.length).toBeGreaterThan(5);
    expect(pages.every((page) => page.length <= SIZE.rows && page.every((line) => width(line) <= SIZE.columns))).toBe(true);
    expect(pages.flat().map((line) => line.replace(/^ {4}/, "")).join("")).toContain(target); // prettier-ignore
    expect(pages.at(-1)?.at(-1)).toBe("[o]nce");
  });

  test("is one page where it fits, and on a terminal that can't place text", () => {
    expect(paginate(["a", "b"], SIZE)).toEqual([["a", "b"]]);
    expect(paginate(["x".repeat(500)], undefined)).toEqual([["x".repeat(500)]]);
  });

  test("writes every cell, wide characters and long lines among them", () => {
    // oxlint-disable-next-line no-control-regex
    const cells = /\x1b\[\d+;1H\x1b#5/;
    const rows = drawScreen(["short", "漢字".repeat(30), "x".repeat(90)], "footer", SIZE)
      .split(cells)
      .slice(1);
    expect(rows).toHaveLength(SIZE.rows);
    expect(rows.map((row) => width(row.replace(/\x1b\[[?\d;]*[hlH]/g, "")))).toEqual(rows.map(() => SIZE.columns)); // oxlint-disable-line no-control-regex
    expect(rows.at(-1)).toContain("footer");
  });
});

describe("what a program has set on the terminal", () => {
  const after = (...texts: string[]): TerminalModes => {
    const modes = new TerminalModes();
    for (const text of texts) modes.note(Buffer.from(text));
    return modes;
  };

  test("is set again as it was, however its sequences were cut", () => {
    expect(after("text\x1b[?25", "l\x1b[3;9r\x1b[4h\x1b[?7h").restored).toBe("\x1b[3;9r\x1b[?25l\x1b[4h");
    expect(after("\x1b[?25l\x1b[3;9r", "\x1bc").restored).toBe("");
    expect(after("\x1b[?25l\x1b[r\x1b[?25h").restored).toBe("");
    expect([after("\x1b[?1049h").alternate, after("\x1b[?1049h\x1b[?1;1049l").alternate, after("\x1b[?47h").alternate]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("knows what has begun and not ended", () => {
    expect(after("a\x1b]0;tit").pending.toString()).toBe("\x1b]0;tit");
    expect(after("\x1b]0;title\x07b", "\x1b]0;t\x1b\\", "\x1b(B", "\x1b7").pending.length).toBe(0);
    expect(after("\x1b[38;5").pending.toString()).toBe("\x1b[38;5");
    expect(after("\x1b[38;5\x18m").pending.length).toBe(0);
    expect(after("\x1bP1$r", "x".repeat(100_000)).pending.length, "too long to be said again").toBe(0);
    expect(after("\x1bP1$r", "x".repeat(100_000), "\x1b\\", "\x1b[?25l").restored).toBe("\x1b[?25l");
  });
});

describe("output while a question is on the screen", () => {
  test("waits, bounded, and comes in order afterwards", async () => {
    const shown: string[] = [];
    const target = new Writable({ write: (chunk: Buffer, _encoding, done) => (shown.push(chunk.toString()), done()) });
    const redraw = vi.fn<() => void>();
    const output = new HeldOutput(target, redraw);
    output.write("before ");
    output.hold();
    let taken = 0;
    while (output.write("x".repeat(1024))) taken += 1;
    expect([shown.join(""), taken < 100]).toEqual(["before ", true]);
    output.release();
    await new Promise<void>((resolve) => output.write(" after", () => resolve()));
    expect(shown.join("")).toMatch(/^before x{65536} after$/);
    expect(redraw).not.toHaveBeenCalled();
  });

  test("of a program that has the whole screen is asked for again", () => {
    const redraw = vi.fn<() => void>();
    const output = new HeldOutput(new Writable({ write: (_chunk, _encoding, done) => done() }), redraw);
    output.write("\x1b[?1049h");
    output.hold();
    output.release();
    expect(redraw).toHaveBeenCalledOnce();
  });
});

describe("lines drawn in place while a question is on the screen", () => {
  test("stay as they are, and end when it has left", () => {
    let shown = "";
    const stderr = Object.assign(new Writable({ write: (chunk: Buffer, _encoding, done) => ((shown += chunk.toString()), done()) }), {
      isTTY: true,
    });
    const screen = new Screen({ stdout: stderr, stderr, env: {}, json: false });
    const lines = new LiveLines(screen, () => ["under way"]);
    lines.redraw();
    lines.hold();
    shown = "";
    lines.redraw();
    lines.say("a remark");
    lines.end({ keep: false });
    expect(shown).toBe("");
    lines.release();
    expect(shown).toContain("a remark\n");
    expect(shown.split("under way").length).toBeLessThanOrEqual(2);
    expect(shown.endsWith("\x1b[J\x1b[?7h"), "nothing is left of them").toBe(true);
  });
});
