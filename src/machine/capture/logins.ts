/**
 * Logins in the settings files of package managers and git: what is read from them for the secrets, and how the same files look
 * inside, with placeholders in place of the values.
 */
import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { cargo } from "./login-cargo.ts";
import { git } from "./login-git.ts";
import { netrc } from "./login-netrc.ts";
import { npm } from "./login-npm.ts";
import { pip } from "./login-pip.ts";

export type LoginFormat = "npm" | "pip" | "netrc" | "git" | "cargo";

export interface Login {
  /** Where it goes, with the port where that is named; empty where the file does not say. */
  readonly host: string;
  /** Tells it from others of the same host; never a part of it that could be secret. */
  readonly detail: string;
  /** For people. */
  readonly what: string;
  readonly value: string;
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

/** A file of settings, or a part of one, taken apart. */
export interface Read {
  readonly logins: readonly Login[];
  readonly unusable: readonly Unusable[];
  /** Its text with these in place of the logins, in their order, and without those that have none; undefined if none is to be shown. */
  readonly shown: (placeholders: readonly (string | undefined)[]) => string | undefined;
}

/** The placeholder of a secret, if there is such a secret. */
export type PlaceholderOf = (secret: string) => string | undefined;

const READERS: Readonly<Record<LoginFormat, (text: string, beside: readonly string[]) => Read | undefined>> = {
  npm,
  pip,
  netrc,
  git,
  cargo,
};
const LONGEST_NAME = 64;

/** `beside` are the texts of files that say more: of cargo, where its registries are. */
export function readLogins(format: LoginFormat, text: string, beside: readonly string[] = []): Logins {
  const read = READERS[format](text, beside);
  if (read === undefined) return { logins: [], unusable: [{ what: "the whole file", reason: "it can't be read" }] };
  return { logins: named(format, read.logins), unusable: read.unusable };
}

function named(format: LoginFormat, logins: readonly Login[]): NamedLogin[] {
  const taken = new Map<string, string>();
  return logins.map((login) => {
    const short = nameOf([format, format === "cargo" ? "" : login.host.replace(/:\d+$/, ""), login.detail]);
    let name = short;
    for (let more = 2; taken.has(name) && taken.get(name) !== login.value; more += 1) name = nameOf([short, String(more)]);
    taken.set(name, login.value);
    return { ...login, name };
  });
}

/** A file of settings as it is inside: with placeholders, and without the logins that have none. Undefined where it can't be read. */
export function withStandIns(format: LoginFormat, text: string, standIn: PlaceholderOf): string | undefined {
  const read = READERS[format](text, []);
  return read?.shown(named(format, read.logins).map(({ name }) => standIn(name)));
}

/** The same of a file that holds nothing but logins: undefined if none is left. */
export function onlyStoodIn(format: LoginFormat, text: string, standIn: PlaceholderOf): string | undefined {
  return withStandIns(format, text, standIn) || undefined;
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
