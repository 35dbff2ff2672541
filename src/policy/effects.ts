/** What known programs do beside running: files they write or delete, hosts they call, packages they bring. */
import { UNKNOWN } from "./pattern.ts";
import { firstOperand } from "./programs/finding.ts";
import { subcommandAt } from "./programs/git.ts";
import { isUnknown, type Word } from "./shell/script.ts";

export interface PathEffect {
  readonly kind: "path";
  readonly shown: string;
  readonly path: Word;
  readonly access: "read" | "write" | "delete" | "enter";
  /** Folders that were entered before, any of which may be the one it is relative to. */
  readonly from: readonly Word[];
}
export interface HostEffect {
  readonly kind: "host";
  readonly shown: string;
  readonly host: string;
}
export interface PackageEffect {
  readonly kind: "package";
  readonly shown: string;
  readonly name: string;
}
export type Effect = PathEffect | HostEffect | PackageEffect;

const DELETING = new Set(["rm", "rmdir", "unlink", "shred", "trash", "srm"]);
const WRITING_ALL = new Set(["tee", "touch", "mkdir", "truncate", "chmod", "chown", "chgrp", "mkfifo", "mknod", "sponge"]);
/** The first operand is a mode or an owner, not a file. */
const WITH_MODE = new Set(["chmod", "chown", "chgrp"]);
const WRITING_LAST = new Set(["cp", "ln", "install", "rsync"]);
const VALUED: Readonly<Record<string, string>> = {
  truncate: "sr",
  mkdir: "m",
  touch: "drt",
  install: "gmoStT",
  cp: "St",
  mv: "St",
  ln: "St",
};

export function effectsOf(name: string, words: readonly Word[], from: readonly Word[]): Effect[] {
  const path =
    (access: PathEffect["access"]) =>
    (word: Word): PathEffect => ({
      kind: "path",
      shown: `${access === "delete" ? "delete" : "write"} ${word.text}`,
      path: word,
      access,
      from: [...from],
    });
  return [
    ...deleted(name, words).map(path("delete")),
    ...written(name, words).map(path("write")),
    ...hosts(name, words),
    ...packages(name, words),
  ];
}

function operands(words: readonly Word[], letters = ""): Word[] {
  const result: Word[] = [];
  for (let index = 1; index < words.length;) {
    const at = firstOperand(words, { letters }, index);
    const word = words[at];
    if (word === undefined) break;
    if (words[at - 1]?.text === "--") return [...result, ...words.slice(at)];
    result.push(word);
    index = at + 1;
  }
  return result;
}

function deleted(name: string, words: readonly Word[]): Word[] {
  if (DELETING.has(name)) return operands(words);
  if (name !== "git") return [];
  const at = subcommandAt(words);
  const subcommand = words[at]?.text;
  if (subcommand === "rm") return operands(words.slice(at));
  const here: Word = { text: ".", match: ".", quoted: false, glob: false, tilde: false };
  return subcommand === "clean" ? [here] : [];
}

function written(name: string, words: readonly Word[]): Word[] {
  if (WRITING_ALL.has(name)) return operands(words, VALUED[name]).slice(WITH_MODE.has(name) ? 1 : 0);
  if (name === "mv") return operands(words, VALUED[name]);
  if (WRITING_LAST.has(name)) {
    const targets = words.slice(1).flatMap((word) => (word.text.startsWith("--target-directory=") ? [cut(word, 19)] : []));
    const last = operands(words, VALUED[name]).at(-1);
    const given = words.findIndex(({ text }) => text === "-t");
    const folder = given > 0 ? words[given + 1] : undefined;
    return [...targets, ...(folder === undefined ? [] : [folder]), ...(last === undefined ? [] : [last])];
  }
  if (name === "dd") return words.filter(({ text }) => text.startsWith("of=")).map((word) => cut(word, 3));
  if (name === "sed" && words.some(({ text }) => /^(-[a-zA-Z]*i|--in-place)/.test(text)))
    return operands(words, "ef").slice(words.some(({ text }) => /^(-[a-zA-Z]*[ef]$|--exp|--fi)/.test(text)) ? 0 : 1);
  if (name === "yq" && words.some(({ text }) => /^(-[a-zA-Z]*i|--inplace)/.test(text))) return operands(words).slice(1);
  if (name === "sort") return words.flatMap((word, index) => (/^-[a-z]*o$/.test(word.text) ? words.slice(index + 1, index + 2) : []));
  if (name === "curl" || name === "wget") return outputs(name, words);
  if (name === "find")
    return words.flatMap((word, index) => (/^-(fprint|fprintf|fls|fprint0)$/.test(word.text) ? words.slice(index + 1, index + 2) : []));
  return [];
}

function outputs(name: string, words: readonly Word[]): Word[] {
  const letter = name === "curl" ? /^-[a-zA-Z]*o$/ : /^-[a-zA-Z]*[OP]$/;
  return words.flatMap((word, index) => {
    if (letter.test(word.text) || word.text === "--output" || word.text === "--output-document") return words.slice(index + 1, index + 2);
    const at = /^--output(-document|-dir)?=/.exec(word.text)?.[0].length;
    return at === undefined ? [] : [cut(word, at)];
  });
}

function cut(word: Word, from: number): Word {
  return { ...word, text: word.text.slice(from), match: word.match.slice(from) };
}

const URL_START = /(?:https?|ftps?|wss?|git|ssh|rsync|sftp|ldap|gopher|dict|telnet):\/\//gi;
const CALLING = new Set(["curl", "wget", "http", "https", "xh", "ab", "wrk", "hey"]);
const CONNECTING = new Set(["ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "socat", "ping", "nmap", "ftp"]);

/** Programs for which an address is text like any other. */
const TEXTUAL = new Set("echo printf grep egrep fgrep rg ag sed awk gawk cat jq yq find test [ tee read export head tail sort".split(" "));
const GIT_REMOTE = new Set(["clone", "fetch", "pull", "push", "remote", "ls-remote", "submodule", "archive"]);

function hosts(name: string, words: readonly Word[]): HostEffect[] {
  const found = new Set<string>();
  if (TEXTUAL.has(name) || (name === "git" && !GIT_REMOTE.has(words[subcommandAt(words)]?.text ?? ""))) return [];
  for (const { match } of words.slice(1)) {
    for (const url of match.matchAll(URL_START)) found.add(hostAt(match.slice(url.index + url[0].length)));
    const copied = /^(?:[\w.-]+@)?([\w.-]+):(?!\/\/|\d+$)/.exec(match);
    if (copied !== null && (CONNECTING.has(name) || name === "git")) found.add(copied[1] ?? "");
  }
  if (CALLING.has(name))
    for (const { match } of operands(words, "XHdFoAbceTuxm").filter(({ match: text }) => looksLikeHost(text))) found.add(hostAt(match));
  if (name === "curl" || name === "wget")
    for (const word of words.slice(1)) if (isUnknown(word) && !word.match.startsWith("-") && found.size === 0) found.add(UNKNOWN);
  if (name === "ssh" || name === "telnet" || name === "nc" || name === "ncat" || name === "netcat") {
    const first = operands(words, "bcDEeFIiJLlmOopQRSWwXxqs")[0];
    if (first !== undefined) found.add(hostAt(first.match));
  }
  return [...found].map((host) => ({ kind: "host", shown: host === UNKNOWN ? "a host known only then" : host, host }));
}

function looksLikeHost(text: string): boolean {
  return (
    !text.includes("://") &&
    /^(?:[^/@]*@)?(?:localhost|\[[0-9a-f:.]+\]|[\w-]+(?:\.[\w-]+)+|\d+|0x[0-9a-f]+)(?::\d+)?(?:[/?#]|$)/i.test(text)
  );
}

/** The host that an address starts with: without user, port and path. */
function hostAt(address: string): string {
  const end = address.search(/[/?#\\\s]/);
  const authority = end < 0 ? address : address.slice(0, end);
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  if (host.startsWith("[")) return host.slice(1, host.indexOf("]") < 0 ? undefined : host.indexOf("]"));
  return host.replace(/:\d*$/, "");
}

const INSTALLING: Readonly<Record<string, ReadonlySet<string>>> = {
  npm: new Set([
    "install",
    "i",
    "in",
    "ins",
    "inst",
    "insta",
    "instal",
    "isnt",
    "isnta",
    "isntal",
    "isntall",
    "add",
    "update",
    "up",
    "upgrade",
  ]),
  pnpm: new Set(["add", "install", "i", "update", "up"]),
  yarn: new Set(["add", "upgrade"]),
  bun: new Set(["add", "install", "i", "update"]),
  pip: new Set(["install", "download"]),
  pip3: new Set(["install", "download"]),
  pipx: new Set(["install", "run"]),
  uv: new Set(["add", "install"]),
  poetry: new Set(["add"]),
  conda: new Set(["install"]),
  gem: new Set(["install"]),
  cargo: new Set(["install", "add"]),
  go: new Set(["install", "get"]),
};

/** Names of packages, without versions. */
function packages(name: string, given: readonly Word[]): PackageEffect[] {
  const isModule = /^python[0-9.]*$/.test(name) && given[1]?.text === "-m" && given[2]?.text === "pip";
  const words = isModule ? given.slice(2) : name === "uv" && given[1]?.text === "pip" ? given.slice(1) : given;
  const manager = isModule ? "pip" : name;
  const installing = Object.hasOwn(INSTALLING, manager) ? INSTALLING[manager] : undefined;
  if (installing === undefined) return [];
  const at = words.findIndex(({ text }, index) => index > 0 && !text.startsWith("-"));
  if (at < 0 || !installing.has(words[at]?.text ?? "")) return [];
  return operands(words.slice(at), "rceitfCn").map((word) => ({
    kind: "package",
    shown: `${manager} package ${word.text}`,
    name: isUnknown(word) ? UNKNOWN : packageName(word.text),
  }));
}

function packageName(text: string): string {
  if (/^[./~]|^git\+|^[\w-]+\//.test(text) || text.includes("://")) return text;
  const version = text.indexOf("@", 1);
  const name = version < 0 ? text : text.slice(0, version);
  const end = name.search(/[[<>=!~;\s]/);
  return (end < 0 ? name : name.slice(0, end)).toLowerCase();
}
