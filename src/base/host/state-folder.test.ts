import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { StateFolder } from "./state-folder.ts";

describe("a state folder", () => {
  const place = mkdtempSync(join(tmpdir(), "viv-state-folder-"));
  afterAll(() => rmSync(place, { recursive: true }));
  let serial = 0;
  const home = (): string => {
    const folder = join(place, `state${serial++}`);
    mkdirSync(folder);
    return folder;
  };
  const idOf = (folder: string): string => {
    const opened = StateFolder.open(folder);
    opened.close();
    return opened.id;
  };

  test("F-53: keeps its id over servers and when it is moved; a copy and a new one at its path have another", () => {
    const first = home();
    const id = idOf(first);
    expect(idOf(first)).toBe(id);
    cpSync(first, `${first}-copy`, { recursive: true });
    expect(idOf(`${first}-copy`)).not.toBe(id);
    renameSync(first, `${first}-moved`);
    expect(idOf(`${first}-moved`)).toBe(id);
    mkdirSync(first);
    expect(idOf(first)).not.toBe(id);
  });

  test("F-53: from before there were ids keeps the name that its groups have", () => {
    const earlier = home();
    writeFileSync(join(earlier, "vivarium.db"), "x");
    let hash = 0;
    for (const character of earlier) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
    expect(idOf(earlier)).toBe(hash.toString(36));
  });

  const ends: Readonly<Record<string, (folder: string) => void>> = {
    "was removed": (folder) => rmSync(folder, { recursive: true }),
    "was removed and made anew": (folder) => {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      idOf(folder);
    },
    "was moved away": (folder) => renameSync(folder, `${folder}-away`),
    "was emptied": (folder) => rmSync(join(folder, "id")),
    "has another server's id": (folder) => {
      rmSync(join(folder, "id"));
      idOf(folder);
    },
    "became a file": (folder) => {
      rmSync(folder, { recursive: true });
      writeFileSync(folder, "");
    },
  };
  test.each(Object.entries(ends))("F-53: that %s is not there any more", (_, end) => {
    const folder = home();
    const opened = StateFolder.open(folder);
    expect(opened.isThere()).toBe(true);
    end(folder);
    expect(opened.isThere()).toBe(false);
    opened.close();
  });
});
