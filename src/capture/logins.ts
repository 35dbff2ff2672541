/**
 * Logins in the settings files of package managers and git: what is read from them for the secrets, and how the same files look
 * inside, with placeholders in place of the values.
 */
import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { looksLikeToken } from "./environment.ts";
import { withoutLogin } from "./gitconfig.ts";
import { cargo, git, netrc, npm, pip } from "./login-readers.ts";

export type LoginFormat = "npm" | "pip" | "netrc" | "git" | "cargo";

export interface Login {
  /** Where it goes; empty where the file does not say. */
  readonly host: string;
  /** Tells it from others of the same host; never a part of it that could be secret. */
  readonly detail: string;
  /** For people. */
  readonly what: string;
  readonly value: string;
  /** Its line, and the part of it that is replaced. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** What stands in that part for a placeholder. */
  readonly written: (placeholder: string) => string;
  /** Further lines that it is nothing without. */
  readonly also?: readonly number[];
}

export interface NamedLogin extends Login {
  /** Name of its secret: the same whenever the file is read. */
  readonly name: string;
}

/** A login that can't be kept, and why. */
export interface Unusable {
  readonly what: string;
  readonly reason: string;
}

export interface Logins {
  readonly logins: readonly NamedLogin[];
  readonly unusable: readonly Unusable[];
}

export interface Read {
  readonly logins: readonly Login[];
  readonly unusable: readonly Unusable[];
}

/** The placeholder of a secret, if there is such a secret. */
export type StandIn = (secret: string) => string | undefined;

const READERS: Readonly<Record<LoginFormat, (text: string, beside: string) => Read>> = { npm, pip, netrc, git, cargo };
const LONGEST_NAME = 64;

/** `beside` is the text of a file that says more: of cargo, where its registries are. */
export function readLogins(format: LoginFormat, text: string, beside = ""): Logins {
  const { logins, unusable } = READERS[format](text, beside);
  const taken = new Map<string, string>();
  const named = logins.map((login) => {
    const short = nameOf([format, format === "cargo" ? "" : login.host, login.detail]);
    let name = short;
    for (let more = 2; taken.has(name) && taken.get(name) !== login.value; more += 1) name = nameOf([short, String(more)]);
    taken.set(name, login.value);
    return { ...login, name };
  });
  return { logins: named, unusable };
}

function nameOf(parts: readonly string[]): string {
  const whole = parts.filter((part) => part !== "").join("-");
  const clean = whole.replaceAll(/[^A-Za-z0-9_.-]+/g, "-").replace(/-+$/, "");
  if (clean.length <= LONGEST_NAME) return clean;
  return `${clean.slice(0, LONGEST_NAME - 9)}-${createHash("sha256").update(whole).digest("hex").slice(0, 8)}`;
}

/** What a file of this name holds; undefined for files that are none of these. */
export function formatOf(path: string): LoginFormat | undefined {
  const name = basename(path);
  if (/^\.?npmrc$/.test(name)) return "npm";
  if (/^[._]?netrc$/.test(name)) return "netrc";
  if (name === "pip.conf" || name === "pip.ini") return "pip";
  if (name === ".git-credentials" || (name === "credentials" && basename(dirname(path)) === "git")) return "git";
  return name === "credentials.toml" || (name === "credentials" && basename(dirname(path)) === ".cargo") ? "cargo" : undefined;
}

/** Lines of a file of settings that have placeholders for every login in them, by number. */
export function stoodIn(format: LoginFormat, text: string, standIn: StandIn): Map<number, string> {
  const { logins } = readLogins(format, text);
  const lines = text.split("\n");
  const result = new Map<number, string>();
  for (const line of new Set(logins.map((login) => login.line))) {
    const here = logins.filter((login) => login.line === line).toSorted((one, other) => other.start - one.start);
    const placeholders = here.map(({ name }) => standIn(name));
    if (placeholders.includes(undefined)) continue;
    const withTexts = (texts: readonly (string | undefined)[]): string =>
      here.reduce(
        (rest, { start, end, written }, index) => rest.slice(0, start) + written(texts[index] ?? "") + rest.slice(end),
        lines[line] ?? "",
      );
    if (holdsMore(withTexts([]))) continue;
    result.set(line, withTexts(placeholders));
    for (const also of here.flatMap((login) => login.also ?? [])) result.set(also, lines[also] ?? "");
  }
  return result;
}

/** A file that holds nothing but logins, with placeholders and without the others; undefined if none is left. */
export function onlyStoodIn(format: LoginFormat, text: string, standIn: StandIn): string | undefined {
  const kept = readLogins(format, text).logins.flatMap(({ name, written }) => {
    const placeholder = standIn(name);
    return placeholder === undefined || holdsMore(written("")) ? [] : [`${written(placeholder)}\n`];
  });
  return kept.length === 0 ? undefined : kept.join("");
}

/** Whether something else in a line looks secret, too: then it is not shown at all. */
function holdsMore(line: string): boolean {
  return looksLikeToken(withoutLogin(line));
}
