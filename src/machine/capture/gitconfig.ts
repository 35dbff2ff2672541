/** A repository's settings without what logs in, runs programs, or reads other files. */
import { closeSync, constants, fchmodSync, fchownSync, futimesSync, lstatSync, openSync } from "node:fs";
import { lstat, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { withoutLogin } from "./addresses.ts";
import { git } from "./git.ts";

/** Patterns of keys as `git config --list` prints them: section and variable in lower case. */
const LEFT_OUT = [
  /^(credential|include|includeif|alias|filter|mergetool|difftool|sendemail|imap|instaweb|browser|man|guitool|pager|gpg|sequence|hook|gui|web|help|fsmonitor|maintenance|lfs)\./,
  /^http\..*(extraheader|cookiefile|sslkey|sslcert|sslcertpasswordprotected|proxy|emptyauth|savecookies)/,
  /^core\.(fsmonitor|hookspath|sshcommand|askpass|pager|editor|gitproxy|alternaterefscommand|attributesfile|excludesfile)$/,
  /^diff\.external$|^diff\..*\.(command|textconv)$|^merge\..*\.driver$|^interactive\.difffilter$/,
  /^remote\..*\.(uploadpack|receivepack|proxy|vcs|proxyauthmethod)$/,
  /^(uploadpack|receive|trailer|submodule)\..*(command|hook|cmd)$|^submodule\..*\.update$/,
  /^url\..*@.*\.(insteadof|pushinsteadof)$/,
];
const LOGIN_NAME = /token|password|secret|passwd/i;

/** A copied file has another inode and change time; without these the first `git status` inside would read every file. */
const ADDED: readonly (readonly [string, string])[] = [
  ["core.checkstat", "minimal"],
  ["core.trustctime", "false"],
];

export interface Setting {
  readonly key: string;
  /** undefined: a key without `=`, which means true. */
  readonly value: string | undefined;
}

/** Whether a setting of this name, whatever its value, runs something, logs in or reads another file. */
export function runsOrLogsIn(key: string): boolean {
  return LEFT_OUT.some((pattern) => pattern.test(key));
}

export function sanitise(settings: readonly Setting[]): Setting[] {
  const kept = settings.filter(({ key }) => !runsOrLogsIn(key) && !ADDED.some(([added]) => added === key));
  return [...withoutLogins(kept), ...ADDED.map(([key, value]) => ({ key, value }))];
}

/** Settings without the logins in their addresses, and without those that may be one or run a program. */
export function withoutLogins(settings: readonly Setting[]): Setting[] {
  return settings.flatMap(({ key, value }): Setting[] => {
    if (withoutLogin(key) !== key || LOGIN_NAME.test(key)) return [];
    if (value === undefined) return [{ key, value }];
    const shown = withoutLogin(value);
    return shown === undefined || shown.startsWith("!") ? [] : [{ key, value: shown }];
  });
}

export function format(settings: readonly Setting[]): string {
  return settings
    .map(({ key, value }) => {
      const first = key.indexOf(".");
      const last = key.lastIndexOf(".");
      const section = key.slice(0, first);
      const sub = last > first ? ` "${key.slice(first + 1, last).replace(/["\\]/g, "\\$&")}"` : "";
      return `[${section}${sub}]\n\t${key.slice(last + 1)}${value === undefined ? "" : ` = ${quote(value)}`}\n`;
    })
    .join("");
}

/** As it is where git reads it so. */
function quote(value: string): string {
  if (/^[^\s"\\#;]([^"\\#;\n\t]*[^\s"\\#;])?$/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&").replace(/\n/g, "\\n").replace(/\t/g, "\\t")}"`;
}

export function parseList(output: string): Setting[] {
  return output
    .split("\0")
    .filter((entry) => entry !== "")
    .map((entry) => {
      const end = entry.indexOf("\n");
      return end < 0 ? { key: entry, value: undefined } : { key: entry.slice(0, end), value: entry.slice(end + 1) };
    });
}

/** Writes the sanitised form of reality's `<root>/<path>` into the tip; nothing if reality's can't be read as settings. */
export async function writeGitConfig(root: string, path: string, tipRoot: string): Promise<void> {
  const target = join(tipRoot, path);
  await requireFolders(tipRoot, dirname(path));
  await rm(target, { force: true });
  if (!/(^|\/)config(\.worktree)?$/.test(path)) return;
  const real = await lstat(join(root, path)).catch(() => undefined);
  if (real?.isFile() !== true) return;
  const listed = await git(root, ["config", "--file", join(root, path), "--no-includes", "--null", "--list"]);
  if (listed.code !== 0) return;
  const file = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(format(sanitise(parseList(listed.stdout.toString()))));
    await file.chmod(real.mode & 0o777);
    if (process.getuid?.() === 0) await file.chown(real.uid, real.gid);
    await file.utimes(real.atime, real.mtime);
  } finally {
    await file.close();
  }
}

/** Every folder on the way is a folder: a link in the tip, copied from reality, must not lead the write elsewhere. */
async function requireFolders(tipRoot: string, path: string): Promise<void> {
  let at = tipRoot;
  for (const name of path.split("/").filter((part) => part !== ".")) {
    at = join(at, name);
    const found = await lstat(at).catch(() => undefined);
    if (found === undefined) await mkdir(at, { mode: 0o755 });
    else if (!found.isDirectory()) throw new VivError("internal", `${path} of a captured repository is not a folder`);
  }
}

/** Owner, mode and times of a folder of reality, for its counterpart in the tip. At once: each call takes less than to wait for a thread. */
export function likeReality(real: string, target: string): void {
  const found = lstatSync(real);
  const folder = openSync(target, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    fchmodSync(folder, found.mode & 0o7777);
    if (process.getuid?.() === 0) fchownSync(folder, found.uid, found.gid);
    futimesSync(folder, found.atime, found.mtime);
  } finally {
    closeSync(folder);
  }
}
