/** pyproject.toml, as package.json, holds both what an attempt may change and how tests are run: only the latter is protected. */

/** Tables below `tool` that configure how tests are run. */
const RUNNER = /^tool\.(pytest|tox|nox|coverage)(\.|$)/;
const HEADER = /^\s*\[\[?([^[\]]+)\]\]?\s*(?:#.*)?$/;
const KEY = /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=/;

interface Parts {
  /** Lines that say how tests are run, each with the table it stands in. */
  readonly runner: readonly string[];
  readonly rest: readonly string[];
}

/**
 * The new text with the old tables of test runners; null where it has them, the old one where nothing else changed or it can't
 * be told apart. Line by line: a value of several lines that hides such a table comes out torn, and then no check passes.
 */
export function withOriginalRunners(oldText: string, newText: string): string | null {
  const [old, now] = [takeApart(oldText), takeApart(newText)];
  if (now === undefined || old === undefined) return oldText === newText ? null : oldText;
  if (same(old.runner, now.runner)) return null;
  if (same(old.rest, now.rest)) return oldText;
  return `${[...now.rest, "", ...old.runner].join("\n")}\n`;
}

/** Undefined where a table is written in a way that hides it. */
function takeApart(text: string): Parts | undefined {
  const [runner, rest]: [string[], string[]] = [[], []];
  let table = "";
  for (const line of text.split(/\r?\n/)) {
    const header = HEADER.exec(line)?.[1];
    const name = header ?? KEY.exec(line)?.[1];
    if (name?.includes("\\") === true) return undefined;
    if (header !== undefined) table = plain(header);
    const path = header !== undefined || name === undefined ? table : [table, plain(name)].filter(Boolean).join(".");
    if (path === "tool" && header === undefined && name !== undefined) return undefined;
    if (!RUNNER.test(path)) rest.push(line);
    else if (RUNNER.test(table)) runner.push(line);
    else runner.push(`[${table}]`, line);
  }
  return { runner, rest };
}

/** `"tool" . pytest` as `tool.pytest`. */
function plain(name: string): string {
  return name.replace(/["'\s]/g, "");
}

function same(one: readonly string[], other: readonly string[]): boolean {
  const words = (lines: readonly string[]): string =>
    lines
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"))
      .join("\n");
  return words(one) === words(other);
}
