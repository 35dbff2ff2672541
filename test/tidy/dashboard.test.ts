/** What the pages say can be typed. */
import { describe, expect, test } from "vitest";
import { COMMON_OPTIONS } from "../../src/interfaces/cli/command.ts";
import { commandNames, loadCommand } from "../../src/interfaces/cli/registry.ts";
import { projectFiles } from "./files.ts";

/** `viv` and what follows it in a text, up to the end of that. */
const LINE = /(?<=["'`])viv ([^"`]+)/g;

describe("the dashboard", () => {
  const lines = projectFiles(/^web\/src\/.*\.tsx?$/).flatMap(({ text }) => [...text.matchAll(LINE)].map(([, line = ""]) => line));

  test("names commands and options that exist", async () => {
    expect(lines.length).toBeGreaterThan(20);
    const wrong: string[] = [];
    for (const line of lines) {
      const [first = "", second = ""] = line.split(" ");
      const name = [`${first} ${second}`, first].find((each) => commandNames().includes(each));
      const declared = name === undefined ? undefined : await loadCommand(name);
      const options = { ...declared?.options, ...COMMON_OPTIONS };
      const unknown = [...line.matchAll(/ --([a-z][a-z-]*)/g)].filter(([, option = ""]) => !Object.hasOwn(options, option));
      if (declared === undefined || unknown.length > 0) wrong.push(line);
    }
    expect(wrong).toEqual([]);
  });
});
