/** Lines that are drawn while something goes on: nothing of them is left behind. */
import { Writable } from "node:stream";
import { describe, expect, test, vi } from "vitest";
import { LiveLines } from "../../src/interfaces/cli/live-lines.ts";
import { FRAMES, Screen } from "../../src/interfaces/cli/screen.ts";
import { screenLines } from "../support/screen-lines.ts";

/** A screen on one terminal, and what that shows. */
function terminal(): { screen: Screen; shown: () => string[] } {
  let written = "";
  const output = (): Writable =>
    Object.assign(
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          written += chunk.toString();
          done();
        },
      }),
      { isTTY: true, columns: 80, rows: 24 },
    );
  const screen = new Screen({ stdout: output(), stderr: output(), env: { TERM: "xterm" }, json: false });
  return { screen, shown: () => screenLines(written) };
}

const drawn = (lines: readonly string[]): string[] => lines.filter((line) => FRAMES.some((frame) => line.includes(frame)));

describe("lines drawn in place", () => {
  test("are not drawn again by a remark that comes after their end", () => {
    const { screen, shown } = terminal();
    const lines = new LiveLines(screen, (frame) => [`${frame} running`]);
    lines.redraw();
    expect(drawn(shown())).toHaveLength(1);
    lines.end({ keep: false });
    lines.say("viv: too late.");
    lines.redraw();
    expect(shown()).toEqual(["viv: too late.", ""]);
  });

  test("that stay do not seem to go on", () => {
    const { screen, shown } = terminal();
    const lines = new LiveLines(screen, (frame) => [`${frame} dev running`]);
    lines.redraw();
    lines.end({ keep: true });
    expect(shown()).toEqual(["· dev running", ""]);
  });

  test("of a long wait give way to what is said meanwhile", async () => {
    vi.useFakeTimers();
    try {
      const { screen, shown } = terminal();
      const work = Promise.withResolvers<void>();
      const waiting = screen.during("Starting the server", work.promise);
      vi.advanceTimersByTime(1000);
      expect(drawn(shown())).toHaveLength(1);
      screen.say("  server: makes the pool");
      screen.print("a result");
      screen.warn("a warning");
      vi.advanceTimersByTime(100);
      expect(shown().slice(0, 3)).toEqual(["  server: makes the pool", "a result", "a warning"]);
      expect(drawn(shown())).toHaveLength(1);
      work.resolve();
      await waiting;
      expect(shown()).toEqual(["  server: makes the pool", "a result", "a warning", ""]);
    } finally {
      vi.useRealTimers();
    }
  });
});
