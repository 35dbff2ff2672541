/** Copies of settings files that keep where packages come from and lose every login, or have a placeholder in its place. */
import { createHash } from "node:crypto";
import { looksLikeToken, looksSecret } from "./environment.ts";
import { withoutLogin } from "./gitconfig.ts";
import { onlyStoodIn, stoodIn, type LoginFormat, type StandIn } from "./logins.ts";

/** Undefined where nothing is left of it. */
export type Sanitiser = (text: string, standIn: StandIn) => string | undefined;

/** Lines that name a login; the value may be anything. */
const LOGIN_LINE = /(auth|token|password|passwd|secret|username|email|otp|cert|key|cookie|credential)[^=\s]*\s*[=:]/i;

const lines =
  (keep: (line: string) => boolean, format?: LoginFormat) =>
  (text: string, standIn?: StandIn): string => {
    const stood = format === undefined || standIn === undefined ? new Map<number, string>() : stoodIn(format, text, standIn);
    return text
      .split("\n")
      .flatMap((content, index) => {
        const line = withoutLogin(content);
        return stood.get(index) ?? (keep(line) && !looksLikeToken(line) ? line : []);
      })
      .join("\n");
  };

/** Registries, proxies and switches stay. */
export const npmrc = lines((line) => !LOGIN_LINE.test(line) && !/_auth/i.test(line), "npm");
export const pipConf = lines((line) => !LOGIN_LINE.test(line), "pip");
/** The way to log in that reads the file of credentials, in which only placeholders stand. */
const CARGO_TOKEN = /^\s*(global-credential-providers|credential-provider)\s*=\s*(\[\s*)?["']cargo:token["'](\s*\])?\s*$/;
/** Sections that hold logins go whole: [registry], [registries.*] keep only index lines. */
export const cargoConfig = lines(
  (line) =>
    CARGO_TOKEN.test(line) ||
    (!/^\s*(token|credential-provider|global-credential-providers|credential-alias|key|secret)/i.test(line) && !/credential/i.test(line)),
);

/** A user's name, address and habits; nothing that runs a program or logs in. */
export const gitconfig = (text: string): string => {
  const kept: string[] = [];
  let keeps = false;
  let login: string | undefined;
  let continues = false;
  for (const raw of text.split("\n")) {
    const line = withoutLogin(raw);
    const wasContinued = continues;
    continues = /(^|[^\\])(\\\\)*\\$/.test(line);
    if (wasContinued) continue;
    const section = /^\s*\[\s*([A-Za-z0-9.-]+)/.exec(line)?.[1]?.toLowerCase();
    if (section !== undefined) {
      keeps = GIT_SECTIONS.has(section);
      login = section === "credential" ? line : undefined;
    }
    const runs =
      /=\s*"?\s*!|command|editor|pager|askpass|hookspath|fsmonitor|sshcommand|program|tool|signingkey|helper|extraheader|excludesfile|attributesfile/i.test(
        line,
      );
    // The file that it reads holds placeholders alone.
    if (login !== undefined && /^\s*helper\s*=\s*"?store"?\s*$/.test(line)) kept.push(login, line);
    if (keeps && !runs && !continues && !looksLikeToken(line)) kept.push(line);
  }
  return kept.join("\n");
};

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
export const environmentFile = lines((line) => {
  const match = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line);
  return match === null || !looksSecret(match[1] ?? "", (match[2] ?? "").replace(/^["']|["']$/g, ""));
});

/** Accounts stay; nobody has a password. */
export const shadow = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.split(":"))
    .map((fields) => (fields.length < 2 ? fields : [fields[0] ?? "", fields[1]?.startsWith("!") === true ? "!" : "*", ...fields.slice(2)]))
    .map((fields) => fields.join(":"))
    .join("\n");

/** Another machine's, but the same one in every sandbox: who is told it knows nothing of this one. */
export const machineId = (text: string): string => `${createHash("sha256").update(`vivarium ${text.trim()}`).digest("hex").slice(0, 32)}\n`;

const only =
  (format: LoginFormat): Sanitiser =>
  (text, standIn) =>
    onlyStoodIn(format, text, standIn);

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
  ".yarnrc": npmrc,
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
