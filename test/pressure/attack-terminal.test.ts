/** PR-14 of the threat list: what a sandbox recorded or named does nothing to the terminal of who looks at it. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { PROGRAM } from "../support/compiled.ts";
import { viv, vivEnvironment } from "../support/viv.ts";

/** By what they do: each is obeyed by some terminal that people use. */
const SEQUENCES = {
  clipboard: "\x1b]52;c;Y2FuYXJ5\x07",
  "clipboard, ended by ST": "\x1b]52;c;Y2FuYXJ5\x1b\\",
  title: "\x1b]0;canary\x07",
  "title that is reported back": "\x1b[21t",
  "setting that is reported back (DECRQSS)": "\x1bP$qm\x1b\\",
  "place of the cursor, reported back": "\x1b[6n",
  link: "\x1b]8;;http://canary.invalid\x1b\\here\x1b]8;;\x1b\\",
  "other screen": "\x1b[?1049h",
  "cleared screen": "\x1b[2J\x1b[H",
  "one-byte OSC": "\u009d52;c;Y2FuYXJ5\u009c",
  "one-byte CSI": "\u009b2J",
  "message to the terminal's program": "\x1b_canary\x1b\\\x1b^canary\x1b\\",
} as const;
const HOSTILE = Object.values(SEQUENCES).join("");
/** Colours are what is left to a log. */
const FORBIDDEN = /\x1b(?!\[[0-9;]*m)|[\u0080-\u009f\x07]/; // oxlint-disable-line no-control-regex

describe("the terminal of who looks at a sandbox", needs("root"), () => {
  let server: TestServer;

  /** What arrives at a terminal on which a shell line runs. */
  function onTerminal(line: string): string {
    const shown = spawnSync("script", ["-qec", line, "/dev/null"], {
      env: vivEnvironment(server, { TERM: "xterm-256color" }),
      timeout: 25_000,
    });
    return shown.stdout.toString();
  }
  const quoted = (word: string): string => `'${word}'`;

  beforeAll(async () => {
    server = await TestServer.start();
    writeFileSync(join(server.place, "hostile"), HOSTILE);
    const box = await server.create({ name: "hostile" });
    const name = HOSTILE.replaceAll("/", "-").slice(0, 100);
    await server.client.call("runCommand", { sandbox: box.id, command: ["touch", `changed-${name}`] });
    await server.client.writeFile(box.id, "content", Readable.from([Buffer.from(HOSTILE)]));
    await server.client.call("runCommand", { sandbox: box.id, command: ["/bin/sh", "-c", "sleep 600; :", HOSTILE], background: true });
    await server.client.call("runCommand", {
      sandbox: box.id,
      command: ["/bin/sh", "-c", 'printf %s "$1"; printf %s "$1" >&2; echo end', "sh", HOSTILE],
    });
  });
  afterAll(async () => server?.remove());

  test("PR-14: gets nothing but text and colours from recorded output, which holds every sequence", () => {
    const raw = viv(server, ["logs", "hostile"]);
    expect([raw.out, raw.err]).toEqual([`${HOSTILE}end\n`, HOSTILE]);
    expect(onTerminal(`cat ${quoted(join(server.place, "hostile"))}`), "a terminal passes them on").toContain(HOSTILE.slice(0, 60));
    for (const line of ["logs hostile", "logs -f hostile", "files cat hostile content"]) {
      const shown = onTerminal(`${PROGRAM} ${line}`);
      expect(shown, line).not.toMatch(FORBIDDEN);
      expect(shown, line).not.toContain("canary.invalid");
    }
    expect(onTerminal(`${PROGRAM} logs hostile`)).toContain("end");
  });

  test.each(["ps hostile", "ps --all hostile", "files ls hostile", "diff hostile"])(
    "PR-14: sees the hostile names in `viv %s` spelled out",
    (line) => {
      const [shown, json] = [onTerminal(`${PROGRAM} ${line}`), onTerminal(`${PROGRAM} ${line} --json`)];
      expect(shown).toContain("\\x1b]52");
      expect(json).toContain("\\u001b]52");
      expect(shown + json).not.toMatch(FORBIDDEN);
    },
  );

  test.each(["diff --patch hostile", "status hostile", "inspect hostile", "events"])(
    "PR-14: gets no sequence from `viv %s`, which tells of the same things",
    (line) => {
      const shown = onTerminal(`${PROGRAM} ${line}`);
      expect(shown).not.toBe("");
      expect(shown).not.toMatch(FORBIDDEN);
    },
  );

  test("PR-14: sees them spelled out in what a command complains about, too", () => {
    const shown = onTerminal(`${PROGRAM} files cat hostile ${quoted(`no-such-${SEQUENCES.clipboard}${SEQUENCES.title}`)}`);
    expect(shown).toContain("no-such-");
    expect(shown).not.toMatch(FORBIDDEN);
  });
});
