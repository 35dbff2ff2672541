/** Which folder of native/ may include headers of which. A new folder gets a row that follows docs/ARCHITECTURE.md. */
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { projectFiles } from "./files.ts";

const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  trees: ["shared"],
  init: ["shared"],
  launch: ["init", "shared"],
  host: ["launch", "shared", "trees"],
  front: ["shared"],
  mover: [],
  tests: ["front", "host", "init", "launch", "mover", "shared", "trees"],
};

/** Folders inside a folder, and which of those beside it each may include. Files of the outer folder include all of them. */
const WITHIN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  trees: { apply: [], diff: [], sync: [] },
  init: {
    channel: ["commands", "files", "network"],
    commands: ["channel", "files", "walls"],
    files: ["channel", "commands", "walls"],
    network: ["channel"],
    walls: [],
  },
};

interface Place {
  /** Empty for main.c. */
  readonly outer: string;
  readonly inner: string;
}

const sources = projectFiles(/^native\/.*\.[ch]$/);
const includes = sources.flatMap(({ path, text }) =>
  [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, name = ""]) => {
    const target = join(dirname(path), name);
    return { said: `${path} includes ${target}`, from: placeOf(path), to: placeOf(target) };
  }),
);

/** `native/init/files/job.h` -> init, files; `native/host/host.h` -> host alone. */
function placeOf(path: string): Place {
  const [, ...folders] = path.split("/").slice(0, -1);
  return { outer: folders[0] ?? "", inner: folders[1] ?? "" };
}

function isAllowed(from: Place, to: Place): boolean {
  if (from.outer === "") return true;
  if (from.outer !== to.outer) return FOLDERS[from.outer]?.includes(to.outer) === true;
  if (from.inner === "" || to.inner === "" || from.inner === to.inner) return true;
  return WITHIN[from.outer]?.[from.inner]?.includes(to.inner) === true;
}

describe("the folders of native", () => {
  test("have a row each, and every file but main.c lies in one", () => {
    const unknown = sources.filter(({ path }) => {
      const { outer, inner } = placeOf(path);
      return outer === ""
        ? path !== "native/main.c"
        : FOLDERS[outer] === undefined || (inner !== "" && WITHIN[outer]?.[inner] === undefined);
    });
    expect(unknown.map(({ path }) => path)).toEqual([]);
  });

  test("include what their rows say", () => {
    expect(includes.filter(({ from, to }) => !isAllowed(from, to)).map(({ said }) => said)).toEqual([]);
  });

  test("have no permission that no include uses", () => {
    const used = new Set(
      includes.flatMap(({ from, to }) => [`${from.outer} -> ${to.outer}`, `${from.outer}/${from.inner} -> ${to.inner}`]),
    );
    const given = [...pairs("", FOLDERS), ...Object.entries(WITHIN).flatMap(([outer, rows]) => pairs(`${outer}/`, rows))];
    expect(given.filter((one) => !used.has(one))).toEqual([]);
  });
});

function pairs(prefix: string, rows: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(rows).flatMap(([folder, may]) => may.map((other) => `${prefix}${folder} -> ${other}`));
}
