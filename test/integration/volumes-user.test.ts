import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";

const NOBODY = 65_534;

describe("plain storage of an ordinary user", needs("linux", "user-namespaces", "open-checkout"), () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "viv-user-")));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("captures, snapshots, rolls back, forks and removes, with folders the sandbox has shut", () => {
    const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
    if (identity.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
    const cell = join(folder, "cell");
    copyFileSync(CELL, cell);
    chmodSync(cell, 0o755);
    const script = join(import.meta.dirname, "../support/as-user.ts");
    const seen: unknown = JSON.parse(
      execFileSync(process.execPath, [script, cell, folder], {
        ...identity,
        cwd: folder,
        encoding: "utf8",
        env: { PATH: process.env["PATH"] ?? "", HOME: folder },
      }),
    );
    expect(seen).toMatchObject({
      staleness: [
        { path: "gone", status: "deleted" },
        { path: "new", status: "added" },
      ],
      captured: ["new", "shut", "stays"],
      changed: ["closed", "new", "shut"],
      rolledBack: ["closed", "new", "shut", "x"],
      forked: ["closed", "new", "shut"],
      left: [],
    });
    expect(seen).toHaveProperty("usage", expect.any(Number));
    expect(seen).toHaveProperty("layer", expect.arrayContaining(["etc", "var"]));
  });
});
