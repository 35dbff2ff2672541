/** What is wrong in a config, where, and what may stand there. */
import type { z } from "zod";
import { AllowedValues } from "./allowed-values.ts";

type Issue = z.core.$ZodIssue;

export interface ConfigProblem {
  readonly path: readonly PropertyKey[];
  /** Words after the key, without a full stop. */
  readonly what: string;
}

const MOST_SHOWN = 80;
/** The value itself must not appear in a log. */
const SECRET = /token|secret|password|set/i;

export function problemIn(schema: z.ZodType, issue: Issue, value: unknown): ConfigProblem {
  const allowed = new AllowedValues(schema);
  const { path, found } = deepest(issue);
  if (found.code === "unrecognized_keys") {
    const keys = allowed.keysAt(path);
    const known = keys.length === 0 ? "" : `; there are ${keys.join(", ")}`;
    return { path: [...path, ...found.keys.slice(0, 1)], what: `there is no such key${known}` };
  }
  const said = wordsOf(found);
  if (said !== undefined) return { path, what: said };
  const given = valueAt(value, path);
  const must = `it must be ${allowed.at(path) ?? "something else"}`;
  if (given === undefined) return { path, what: `it is missing; ${must}` };
  return { path, what: path.some((part) => SECRET.test(String(part))) ? must : `${must}, not ${shown(given)}` };
}

/** Of several alternatives, finds the one that the person meant: its errors lie deepest. */
function deepest(issue: Issue, above: readonly PropertyKey[] = []): { readonly path: readonly PropertyKey[]; readonly found: Issue } {
  const path = [...above, ...issue.path];
  if (issue.code !== "invalid_union") return { path, found: issue };
  const meant = issue.errors.find((issues) => issues.length > 0 && issues.every((one) => one.path.length > 0));
  const [first] = meant ?? [];
  return first === undefined ? { path, found: issue } : deepest(first, path);
}

/** What a rule says in its own words; undefined where the allowed values say it better. */
function wordsOf(issue: Issue): string | undefined {
  if (issue.code === "custom") return issue.message.replace(/\.$/, "");
  if (issue.code === "invalid_key") return issue.issues[0]?.message ?? issue.message;
  if (issue.code === "invalid_format") return issue.message.startsWith("Invalid") ? undefined : issue.message;
  return undefined;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, part) => (typeof at === "object" && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined),
    value,
  );
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}
