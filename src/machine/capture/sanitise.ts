/** Copies of settings files that keep where packages come from and lose every login, or have a placeholder in its place. */
import { createHash } from "node:crypto";
import { isLoginKey, withoutLogin } from "./addresses.ts";
import { looksSecret } from "./environment.ts";
import { format, runsOrLogsIn, withoutLogins } from "./gitconfig.ts";
import { parseGitConfig } from "./gitconfig-parser.ts";
import { cargoSettings } from "./login-cargo.ts";
import { onlyStoodIn, withStandIns, type LoginFormat, type PlaceholderOf } from "./logins.ts";
import { looksLikeToken } from "./secret-values.ts";

/** Undefined where nothing is left of it, or it can't be read. */
export type Sanitiser = (text: string, standIn: PlaceholderOf) => string | undefined;

const settings =
  (of: LoginFormat): Sanitiser =>
  (text, standIn) =>
    withStandIns(of, text, standIn);

/** Registries, proxies and switches stay. */
export const npmrc = settings("npm");
export const pipConf = settings("pip");
export const cargoConfig: Sanitiser = (text) => cargoSettings(text);

/** A name and a value on each line, each as it is or as a JSON string. */
const YARN_LINE = /^("(?:[^"\\]|\\.)*"|[^\s"#]+)[ \t]+("(?:[^"\\]|\\.)*"|[^\s"]+)$/;

/** Yarn's own settings; undefined where a line is anything else. */
export const yarnrc: Sanitiser = (text) => {
  const lines = text.split(/\r?\n/).filter((line) => !/^\s*(#.*)?$/.test(line));
  const kept: string[] = [];
  for (const line of lines) {
    const [, key, value] = YARN_LINE.exec(line) ?? [];
    if (key === undefined || value === undefined) return undefined;
    const shown = withoutLogin(value);
    if (!isLoginKey(key) && withoutLogin(key) === key && shown !== undefined) kept.push(`${key} ${shown}\n`);
  }
  return kept.join("");
};

/** A user's name, address and habits; nothing that runs a program or logs in. Undefined where git could not read it either. */
export const gitconfig: Sanitiser = (text) => {
  const kept = parseGitConfig(text)?.filter(({ key, value }) => {
    // The file that it reads holds placeholders alone.
    if (/^credential\.(.*\.)?helper$/.test(key)) return value === "store";
    const section = key.slice(0, key.indexOf("."));
    return GIT_SECTIONS.has(section) && !RUNS.test(key) && (section === "alias" || !runsOrLogsIn(key));
  });
  return kept === undefined ? undefined : format(withoutLogins(kept));
};

const RUNS = /command|editor|pager|askpass|program|tool|signingkey|helper/;

const GIT_SECTIONS = new Set([
  "user",
  "init",
  "core",
  "color",
  "column",
  "branch",
  "push",
  "pull",
  "fetch",
  "rebase",
  "merge",
  "diff",
  "status",
  "log",
  "commit",
  "tag",
  "advice",
  "alias",
  "rerere",
  "apply",
  "safe",
]);

/** NAME=value lines of /etc/environment. */
export const environmentFile: Sanitiser = (text) =>
  text
    .split("\n")
    .filter((line) => {
      const match = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line);
      if (match === null) return withoutLogin(line) === line && !looksLikeToken(line);
      return !looksSecret(match[1] ?? "", (match[2] ?? "").replace(/^["']|["']$/g, ""));
    })
    .join("\n");

/** Accounts stay, without their passwords. */
export const shadow = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.split(":"))
    .map((fields) => (fields.length < 2 ? fields : [fields[0] ?? "", fields[1]?.startsWith("!") === true ? "!" : "*", ...fields.slice(2)]))
    .map((fields) => fields.join(":"))
    .join("\n");

/** Another machine's, but the same one in every sandbox: a program that reads it learns nothing about this machine. */
export const machineId = (text: string): string => `${createHash("sha256").update(`vivarium ${text.trim()}`).digest("hex").slice(0, 32)}\n`;

const only =
  (of: LoginFormat): Sanitiser =>
  (text, standIn) =>
    onlyStoodIn(of, text, standIn);

/** Files of a home folder that hold nothing but logins: there where all or some of them have placeholders. */
export const LOGIN_FILES: Readonly<Record<string, Sanitiser>> = {
  ".netrc": only("netrc"),
  ".git-credentials": only("git"),
  ".config/git/credentials": only("git"),
  ".cargo/credentials.toml": only("cargo"),
  ".cargo/credentials": only("cargo"),
};

/** Relative to a home folder. */
export const HOME_FILES: Readonly<Record<string, Sanitiser>> = {
  ".npmrc": npmrc,
  ".yarnrc": yarnrc,
  ".gitconfig": gitconfig,
  ".config/git/config": gitconfig,
  ".pip/pip.conf": pipConf,
  ".config/pip/pip.conf": pipConf,
  ".cargo/config.toml": cargoConfig,
  ".cargo/config": cargoConfig,
};

export const SYSTEM_FILES: Readonly<Record<string, Sanitiser>> = {
  "/etc/shadow": shadow,
  "/etc/gshadow": shadow,
  "/etc/npmrc": npmrc,
  "/usr/etc/npmrc": npmrc,
  "/usr/local/etc/npmrc": npmrc,
  "/etc/gitconfig": gitconfig,
  "/etc/pip.conf": pipConf,
  "/etc/environment": environmentFile,
  "/etc/machine-id": machineId,
  "/var/lib/dbus/machine-id": machineId,
};
