/**
 * Leaving the task, as far as words and paths show it. That is a weak sign: without paths in the task it stays below what is acted on,
 * and is only a reason to ask a configured model.
 */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import { THRESHOLDS } from "../thresholds.ts";

const COMMON = new Set(
  "this that with from have when then them they there which should would could into over also only make sure please does dont after before where while using used your code file files project task tests test fix add change".split(
    " ",
  ),
);

/** Paths that a task names: with a slash, or with the ending of a file. */
export function pathsIn(task: string): string[] {
  const found = task.match(/(?<![\w/:.@-])(?:\.{0,2}\/)?[\w@.-]+(?:\/[\w@.*-]+)+\/?|(?<![\w/.-])[\w-]+\.[a-z]{1,5}\b/g) ?? [];
  return [...new Set(found.map((path) => path.replace(/^\.?\//, "").replace(/[/.*]+$/, "")))].filter((path) => path !== "");
}

export const drift: Detector = (picture, { task }) => byPaths(picture, pathsIn(task)) ?? byWords(picture, task);

/** Most of the files that were changed of late lie elsewhere than the task says. */
function byPaths({ touches }: Parameters<Detector>[0], named: readonly string[]): ReturnType<Detector> {
  const paths = [...new Map(touches.map((touch) => [touch.path, touch])).values()].slice(-THRESHOLDS.driftPaths);
  const newest = paths.at(-1);
  if (named.length === 0 || newest === undefined || paths.length < THRESHOLDS.driftPaths) return undefined;
  const away = paths.filter(({ path }) => !named.some((name) => isNear(path, name)));
  if (away.length < paths.length * THRESHOLDS.driftShare) return undefined;
  return {
    concern: "drift",
    confidence: 0.6,
    evidence: `The task names ${named
      .slice(0, 3)
      .map((name) => quoted(name))
      .join(
        ", ",
      )}, but ${away.length} of the last ${paths.length} changed files lie elsewhere (events ${paths[0]?.sequence ?? "?"} to ${newest.sequence}), such as ${away
      .slice(0, 3)
      .map(({ path }) => quoted(path))
      .join(", ")}.`,
    key: "drift of paths",
    since: paths[0]?.at ?? newest.at,
    at: newest.at,
  };
}

/** In the folder of what is named, or a file that carries its name, such as its test. */
function isNear(path: string, name: string): boolean {
  const folder = name.includes(".") ? name.split("/").slice(0, -1).join("/") : name;
  const stem = (name.split("/").at(-1) ?? name).replace(/\.\w+$/, "");
  return path.startsWith(name) || (folder !== "" && path.startsWith(`${folder}/`)) || (stem.length > 2 && path.includes(stem));
}

function byWords({ steps }: Parameters<Detector>[0], task: string): ReturnType<Detector> {
  const wanted = wordsOf(task);
  const late = steps.slice(-THRESHOLDS.driftSteps);
  const newest = late.at(-1);
  if (newest === undefined || wanted.size < 3 || late.length < THRESHOLDS.driftSteps) return undefined;
  if (late.some(({ title }) => [...wordsOf(title)].some((word) => wanted.has(word)))) return undefined;
  return {
    concern: "drift",
    confidence: 0.4,
    evidence: `None of the last ${late.length} steps (events ${late[0]?.sequences[0] ?? "?"} to ${newest.sequences[1]}) has a word of the task in it.`,
    key: "drift of words",
    since: late[0]?.at ?? newest.at,
    at: newest.at,
  };
}

function wordsOf(text: string): Set<string> {
  const words =
    text
      .replace(/([a-z])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .match(/\p{L}{4,}/gu) ?? [];
  return new Set(words.map((word) => word.replace(/(ing|ed|es|s)$/, "")).filter((word) => word.length > 2 && !COMMON.has(word)));
}
