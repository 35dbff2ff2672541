/** What known programs do beside running: files they write or delete, hosts they call, packages they bring. */
import { UNKNOWN } from "./pattern.ts";
import { tarWords } from "./programs/code.ts";
import { packages, type PackageEffect } from "./packages.ts";
import { operands, optionValues } from "./programs/finding.ts";
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
  patch: "bBdDFgioprVxYz",
  split: "abClnt",
  uniq: "fsw",
  xxd: "clgors",
};

/** Which operand is written, of those that write one of them. */
const WRITING_AT: Readonly<Record<string, number>> = { zip: 0, patch: 0, split: 1, uniq: 1, xxd: 1 };
const PACKING = new Set(["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd"]);
/** Options whose value is a file or folder that is written. */
const WRITING_OPTIONS: Readonly<Record<string, { readonly letters?: string; readonly names?: readonly string[] }>> = {
  sort: { letters: "o", names: ["output"] },
  tree: { letters: "o" },
  less: { letters: "oO", names: ["log-file", "LOG-FILE"] },
  patch: { letters: "od", names: ["output", "directory"] },
  unzip: { letters: "d" },
  curl: { letters: "o", names: ["output", "output-dir"] },
  wget: { letters: "OP", names: ["output-document", "directory-prefix"] },
  ...Object.fromEntries(["cp", "mv", "ln", "install"].map((name) => [name, { letters: "t", names: ["target-directory"] }])),
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
  const options = optionPaths(name, words);
  if (name === "mv") return [...options, ...operands(words, VALUED[name])];
  if (WRITING_LAST.has(name)) return [...options, ...operands(words, VALUED[name]).slice(-1)];
  const place = WRITING_AT[name];
  if (place !== undefined) return [...options, ...operands(words, VALUED[name]).slice(place, place + 1)];
  if (PACKING.has(name))
    return words.some(({ text }) => /^(-[a-zA-Z]*[clt]|--(stdout|to-stdout|list|test))/.test(text)) ? [] : operands(words);
  if (name === "dd") return words.filter(({ text }) => text.startsWith("of=")).map((word) => cut(word, 3));
  if (name === "tar" || name === "bsdtar" || name === "gtar") return packed(tarWords(words));
  if (name === "git") return words[subcommandAt(words)]?.text === "archive" ? optionValues(words, { letter: "o" }) : [];
  if (name === "sed" && words.some(({ text }) => /^(-[a-zA-Z]*i|--in-?[a-z]*)/.test(text)))
    return operands(words, "ef").slice(words.some(({ text }) => /^(-[a-zA-Z]*[ef]$|--exp|--fi)/.test(text)) ? 0 : 1);
  if (name === "yq" && words.some(({ text }) => /^(-[a-zA-Z]*i|--inplace)/.test(text))) return operands(words).slice(1);
  if (name === "find")
    return words.flatMap((word, index) => (/^-(fprint|fprintf|fls|fprint0)$/.test(word.text) ? words.slice(index + 1, index + 2) : []));
  return options;
}

function optionPaths(name: string, words: readonly Word[]): Word[] {
  const { letters = "", names = [] } = (Object.hasOwn(WRITING_OPTIONS, name) ? WRITING_OPTIONS[name] : undefined) ?? {};
  return [
    ...letters.split("").flatMap((letter) => (letter === "" ? [] : optionValues(words, { letter }))),
    ...names.flatMap((each) => optionValues(words, { name: each })),
  ].filter(({ text }) => text !== "-");
}

/** The folder that is unpacked into, and the archive that is made. */
function packed(words: readonly Word[]): Word[] {
  const makes = words.some(({ text }) => /^-[a-zA-Z]*[cruA]|^--(create|append|update|cat)/.test(text));
  const archives = makes ? [...optionValues(words, { letter: "f" }), ...optionValues(words, { name: "file" })] : [];
  const folders = words.flatMap((word) => (word.text.startsWith("--one-top-level=") ? [cut(word, 16)] : []));
  const places = [...optionValues(words, { letter: "C" }), ...optionValues(words, { name: "directory" })];
  return [...archives, ...folders, ...(makes ? [] : places)].filter(({ text }) => text !== "-");
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
