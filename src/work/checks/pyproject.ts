/** pyproject.toml, as package.json, holds both what an attempt may change and how tests are run: only the latter is protected. */
import { isDeepStrictEqual } from "node:util";
import { parse, stringify, type TomlTable } from "smol-toml";

/** Tables of `tool` that configure how tests are run. */
const RUNNERS = new Set(["pytest", "tox", "nox", "coverage"]);

interface Parts {
  readonly runners: TomlTable;
  readonly rest: TomlTable;
}

/** The new text with the old tables of test runners; null where it has them, the old one where nothing else changed or it is no TOML. */
export function withOriginalRunners(oldText: string, newText: string): string | null {
  const [old, now] = [takeApart(oldText), takeApart(newText)];
  if (now === undefined || old === undefined) return oldText === newText ? null : oldText;
  if (isDeepStrictEqual(old.runners, now.runners)) return null;
  if (isDeepStrictEqual(old.rest, now.rest)) return oldText;
  const tool = { ...toolOf(now.rest), ...old.runners };
  return stringify({ ...now.rest, ...(Object.keys(tool).length === 0 ? {} : { tool }) });
}

function takeApart(text: string): Parts | undefined {
  let file: TomlTable;
  try {
    file = parse(text, { integersAsBigInt: "asNeeded" });
  } catch {
    return undefined;
  }
  const tools = Object.entries(toolOf(file));
  const { tool: _, ...others } = file;
  const left = tools.filter(([name]) => !RUNNERS.has(name));
  return {
    runners: Object.fromEntries(tools.filter(([name]) => RUNNERS.has(name))),
    rest: { ...others, ...(left.length === 0 ? {} : { tool: Object.fromEntries(left) }) },
  };
}

function toolOf({ tool }: TomlTable): TomlTable {
  return typeof tool === "object" && !Array.isArray(tool) && !(tool instanceof Date) ? tool : {};
}
