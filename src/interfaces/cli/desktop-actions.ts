/** What is done at a desktop, from words as people type them. */
import type { DesktopAction } from "../../base/schema/desktop.ts";
import { parseDuration, parseInteger, usageError } from "./values.ts";

type Parser = (words: readonly string[], rest: string) => DesktopAction;

/** As in help. */
export const ACTION_WORDS =
  "click [X Y], double-click [X Y], right-click [X Y], move X Y, drag X Y TO-X TO-Y, scroll STEPS [X Y], type TEXT, key KEYS, wait [TIME]";

function numbers(words: readonly string[], counts: readonly number[], usage: string): number[] {
  if (!counts.includes(words.length)) throw usageError(`The action is written \`${usage}\`.`);
  return words.map((word) => parseInteger(usage.split(" ")[0] ?? usage, word));
}

function place(words: readonly string[], usage: string): { x?: number; y?: number } {
  const [x, y] = numbers(words, [0, 2], usage);
  return x === undefined || y === undefined ? {} : { x, y };
}

const click =
  (usage: string, how: { button: "left" | "right"; count: number }): Parser =>
  (words) => ({ do: "click", ...how, ...place(words, usage) });

const PARSERS: Readonly<Record<string, Parser>> = {
  click: click("click [X Y]", { button: "left", count: 1 }),
  "double-click": click("double-click [X Y]", { button: "left", count: 2 }),
  "right-click": click("right-click [X Y]", { button: "right", count: 1 }),
  move: (words) => {
    const [x = 0, y = 0] = numbers(words, [2], "move X Y");
    return { do: "move", x, y };
  },
  drag: (words) => {
    const [x = 0, y = 0, toX = 0, toY = 0] = numbers(words, [4], "drag X Y TO-X TO-Y");
    return { do: "drag", x, y, toX, toY, button: "left" };
  },
  scroll: (words) => {
    const [steps = "", ...at] = words;
    const isUp = steps.startsWith("-");
    const [down = 0] = numbers([isUp ? steps.slice(1) : steps], [1], "scroll STEPS [X Y]");
    return { do: "scroll", down: isUp ? -down : down, right: 0, ...place(at, "scroll STEPS [X Y]") };
  },
  type: (_, text) => ({ do: "type", text }),
  key: (_, keys) => ({ do: "key", keys }),
  wait: ([time = "10s", ...more]) => {
    if (more.length > 0) throw usageError("The action is written `wait [TIME]`.");
    return { do: "wait", timeoutMs: parseDuration("wait", time) };
  },
};

/** One argument is one action: a word, then what it takes. */
export function desktopAction(line: string): DesktopAction {
  const [, word = "", rest = ""] = /^\s*(\S+)\s?(.*)$/s.exec(line) ?? [];
  const parser = Object.hasOwn(PARSERS, word) ? PARSERS[word] : undefined;
  if (parser === undefined) throw usageError(`There is no action \`${line}\`.`, `Actions are ${ACTION_WORDS}.`);
  return parser(
    rest.split(/\s+/).filter((part) => part !== ""),
    rest,
  );
}
