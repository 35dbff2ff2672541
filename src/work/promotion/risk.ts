/** What in a change a person should look at before it lies in a real project. Everything here was written inside: it is only read. */
import { setImmediate as othersTurn } from "node:timers/promises";
import { type Contents, withContents } from "../../machine/merge/contents.ts";
import { GIT_PATHS, isRunningDotfile, RUNS_BY_ITSELF, SUBMODULES } from "../../machine/merge/risk-rules.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { Risk } from "../../base/schema/promotion.ts";
import { findSecret, SECRETS } from "../../base/schema/secret-patterns.ts";
import { hiddenInName, hiddenText } from "./hidden-text.ts";
import { repositoryFiles } from "./repository-files.ts";

/** Contents are looked into as far as that; what is longer is said to be unseen. */
const MOST_BYTES = 16 * 1024 ** 2;
/** Reading thousands of small files takes a tenth of the time if none is waited for; others get their turn that often. */
const TURN_MS = 5;

/** `project` is the real folder that the changes are for; `run` are names of files that lines of its config run on this machine. */
export async function findRisks(
  changes: readonly MergedChange[],
  contents: string,
  project: string,
  run: ReadonlySet<string> = new Set(),
): Promise<Risk[]> {
  const found = await withContents(contents, (held) => risksIn(changes, held));
  const planted = repositoryFiles(changes, project).map((path): Risk => ({ path: decodePath(path), kind: "git", why: PLANTED }));
  const hostRun = changes.map(({ path }) => decodePath(path)).filter((path) => run.has(path));
  return [...found, ...planted, ...hostRun.map((path): Risk => ({ path, kind: "runs-by-itself", why: HOST_RUN }))];
}

const HOST_RUN = "A line of vivarium.json runs it on this machine; after the change that line waits for `viv trust`.";
const PLANTED = "It is part of a folder that git takes for a repository: git that is run in there takes settings and hooks from it.";

async function risksIn(changes: readonly MergedChange[], contents: Contents): Promise<Risk[]> {
  const risks: Risk[] = [];
  let began = performance.now();
  for (const change of changes) {
    risks.push(...risksOf(change, contents));
    if (performance.now() - began < TURN_MS) continue;
    await othersTurn();
    began = performance.now();
  }
  return risks;
}

function risksOf(change: MergedChange, contents: Contents): Risk[] {
  const path = decodePath(change.path);
  const found = pathRisks(path, change);
  if (change.new === null) return found;
  const content = read(contents, change.new.id);
  if (change.new.mode === "120000") return [...found, ...linkRisks(change.path.toString("latin1"), path, content?.toString() ?? "")];
  if (content === undefined) return [...found, { path, kind: "hidden-text", why: "It is too large to be looked into." }];
  return [...found, ...contentRisks(path, textBefore(contents, change.old), content)];
}

/** Most files hold nothing for which it matters what was there before: then that is not read. */
function textBefore(contents: Contents, old: MergedChange["old"]): () => string {
  let text: string | undefined;
  return () => (text ??= old === null || old.mode === "120000" ? "" : (read(contents, old.id)?.toString() ?? ""));
}

function pathRisks(path: string, change: MergedChange): Risk[] {
  const lower = path.toLowerCase();
  const risks: Risk[] = [];
  const add = (kind: Risk["kind"], why: string): void => void risks.push({ path, kind, why });
  const odd = oddInName(change.path);
  if (odd !== undefined) add("name", `Its name holds ${odd}.`);
  if (lower === "vivarium.json") add("config", "It decides what sandboxes of this project may see and do.");
  if (SUBMODULES.pattern.test(lower)) add("submodule", SUBMODULES.why);
  for (const { pattern, why } of GIT_PATHS) if (pattern.test(lower)) add("git", why);
  const runs = RUNS_BY_ITSELF.find(({ pattern }) => pattern.test(lower));
  if (runs !== undefined) add("runs-by-itself", runs.why);
  else if (risks.length === 0 && isRunningDotfile(path))
    add("runs-by-itself", "Programs read files that begin with a dot without being asked.");
  return risks;
}

/** Characters that are not seen, of no known encoding, for private use, or of other scripts between Latin ones; in words for a sentence. */
function oddInName(path: Buffer): string | undefined {
  const text = path.toString();
  const isPlain = /^[ -~]*$/.test(text);
  const hidden = isPlain ? undefined : hiddenInName(text);
  if (hidden !== undefined) return hidden;
  if (!isPlain && /[\p{Co}\ufffd]/u.test(text)) return "characters that have no meaning of their own";
  if (/(?:^|\/)[-\s]|\s(?:\/|$)/.test(text)) return "a dash or a blank where a program takes it for something else";
  if (isPlain) return undefined;
  const parts = text.split("/");
  const isMixed = (part: string): boolean => /[a-z]/i.test(part) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(part);
  return parts.some(isMixed) ? "letters of another script that look like Latin ones" : undefined;
}

function linkRisks(raw: string, path: string, target: string): Risk[] {
  const hidden = hiddenInName(target);
  const odd: Risk[] = hidden === undefined ? [] : [{ path, kind: "name", why: `The name that it is a link to holds ${hidden}.` }];
  return [...odd, ...wayOut(raw, path, target)];
}

/** A link is fine if it climbs no higher than the project, and climbs only at its beginning: further on, other links would decide. */
function wayOut(raw: string, path: string, target: string): Risk[] {
  const depth = raw.split("/").length - 1;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const climbs = parts.findIndex((part) => part !== "..");
  const leading = climbs < 0 ? parts.length : climbs;
  const leaves = target.startsWith("/") || leading > depth || parts.slice(leading).includes("..");
  if (leaves) return [{ path, kind: "link-out", why: "It is a link that leads out of the project, or could." }];
  if (parts.slice(leading).some((part) => part.toLowerCase() === ".git"))
    return [{ path, kind: "link-out", why: "It is a link into the project's git folder." }];
  return [];
}

/** As git and a refresh leave them. Without the first there are none. */
const FIRST_MARKER = "<<<<<<< ";
const CONFLICT_MARKERS = [/^<{7} /m, /^={7}\r?$/m, /^>{7} /m];

function contentRisks(path: string, before: () => string, content: Buffer): Risk[] {
  const text = content.toString();
  const risks: Risk[] = [];
  for (const secret of SECRETS) {
    const found = findSecret(secret, text);
    if (found !== undefined && !before().includes(found))
      risks.push({ path, kind: "secret", why: `It holds what looks like ${secret.what}.` });
  }
  const hidden = hiddenText(content, text, before);
  if (hidden !== undefined) risks.push({ path, kind: "hidden-text", why: hidden });
  if (text.includes(FIRST_MARKER) && hasConflict(text) && !hasConflict(before()))
    risks.push({ path, kind: "conflict", why: "It holds the marks of a conflict that was not solved." });
  if (/(^|\/)package\.json$/.test(path) && scriptsOf(text) !== scriptsOf(before()))
    risks.push({ path, kind: "runs-by-itself", why: "Its scripts changed; package managers run some of them without being asked." });
  return risks;
}

function hasConflict(text: string): boolean {
  return CONFLICT_MARKERS.every((marker) => marker.test(text));
}

/** What of a package.json is run: equal strings for equal scripts. */
function scriptsOf(text: string): string {
  if (text === "") return "{}";
  try {
    const { scripts = {}, gypfile, bin } = JSON.parse(text) as { scripts?: Record<string, unknown>; gypfile?: unknown; bin?: unknown };
    return JSON.stringify({ scripts, gypfile, bin }) === '{"scripts":{}}' ? "{}" : JSON.stringify({ scripts, gypfile, bin });
  } catch (error) {
    // What is no JSON may still be read by something: it differs from everything.
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}

/** Undefined if it is too long. */
function read(contents: Contents, id: string): Buffer | undefined {
  return contents.sizeOf(id) > MOST_BYTES ? undefined : contents.read(id);
}
