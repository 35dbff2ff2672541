import { describe, expect, test } from "vitest";
import { COMMON_OPTIONS, type CommandDeclaration } from "./command.ts";
import { foreignCommands, adviceFor } from "./foreign-commands.ts";
import { parse } from "./parse.ts";
import { loadAll } from "./registry.ts";

const everything = await loadAll();

function declared(name: string): CommandDeclaration {
  const found = everything.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no command ${name}`);
  return found;
}

describe("words of other tools", () => {
  test.each(["images", "pull", "unpause", "restart", "rename", "commit", "top", "stats", "delete", "list", "bash", "wait", "container"])(
    "as `viv %s` are answered with how it is done here",
    (word) => {
      expect(adviceFor(word)).toMatch(/viv/);
    },
  );

  test.each([
    ["run", "-v", /own paths/],
    ["create", "--volume", /own paths/],
    ["run", "-d", /viv exec -d/],
    ["create", "--publish", /viv port/],
    ["run", "--privileged", /--user root/],
    ["up", "-d", /background/],
    ["stop", "-t", /viv kill/],
  ] as const)("as `viv %s %s` are answered with how it is done here", (name, option, advice) => {
    const declaration = declared(name);
    expect(() => parse(declaration, [option, "x"])).toThrow(
      expect.objectContaining({ code: "usage", remedy: expect.stringMatching(advice) }),
    );
  });

  test.each([
    ["ps", [], /`viv ls`/],
    ["kill", ["try"], /`viv stop/],
    ["exec", ["try"], /`viv shell/],
    ["attach", ["try"], /`viv ps/],
  ] as const)("as `viv %s %j` without the rest say what was perhaps meant", (name, words, advice) => {
    const declaration = declared(name);
    expect(() => parse(declaration, words)).toThrow(expect.objectContaining({ remedy: expect.stringMatching(advice) }));
  });

  test("are answered with commands and options that there are", () => {
    for (const advice of foreignCommands()) {
      const named = [...advice.matchAll(/`viv ([a-z]+(?: (?:set|import))?)([^`]*)`/g)];
      expect(named.length + Number(/no images|background/.test(advice)), advice).toBeGreaterThan(0);
      for (const [, name = "", rest = ""] of named) {
        const declaration = everything.find((each) => each.name === name || each.name === name.split(" ")[0]);
        expect(declaration, advice).toBeDefined();
        for (const [, option = ""] of rest.split(" -- ")[0]?.matchAll(/--([a-z-]+)/g) ?? [])
          expect(Object.keys({ ...declaration?.options, ...COMMON_OPTIONS }), advice).toContain(option);
      }
    }
  });
});
