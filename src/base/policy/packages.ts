/** Packages that a command brings. */
import { UNKNOWN } from "./pattern.ts";
import { firstOperand, operands, optionValues } from "./programs/finding.ts";
import { isUnknown, type Word } from "./shell/script.ts";

export interface PackageEffect {
  readonly kind: "package";
  readonly shown: string;
  readonly name: string;
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
export function packages(name: string, given: readonly Word[]): PackageEffect[] {
  const module = moduleAt(name, given);
  const within = given[1]?.text ?? "";
  const inner = (name === "uv" && (within === "pip" || within === "tool")) || (name === "yarn" && within === "workspace");
  const words = module > 0 ? given.slice(module) : inner ? given.slice(name === "yarn" ? 2 : 1) : given;
  const manager = module > 0 || /^pip[0-9.]*$/.test(name) ? "pip" : name;
  return packageWords(manager, words)
    .filter(({ text }) => !OWN_PROJECT.test(text))
    .map((word) => ({
      kind: "package",
      shown: `${manager} package ${word.text}`,
      name: isUnknown(word) ? UNKNOWN : packageName(word.text),
    }));
}

/** `.` and `.[dev]`: the project's own code. */
const OWN_PROJECT = /^\.\/?(?:\[[\w, -]*\])?$/;
/** They fetch what is not there, and run it. */
const FETCHING: Readonly<Record<string, readonly string[]>> = {
  npx: [],
  bunx: [],
  uvx: [],
  npm: ["exec", "x", "create", "init", "innit"],
  pnpm: ["dlx", "create"],
  yarn: ["dlx", "create"],
  bun: ["x", "create"],
  pipx: ["run"],
};

function packageWords(manager: string, words: readonly Word[]): Word[] {
  const fetching = Object.hasOwn(FETCHING, manager) ? FETCHING[manager] : undefined;
  if (fetching !== undefined) {
    const at = fetching.length === 0 ? 0 : subcommandOf(words, new Set(fetching));
    const start = at < 0 ? -1 : firstOperand(words, { letters: "pc", names: ["package", "call", "from", "with", "python"] }, at + 1);
    const options = words.slice(Math.max(0, at), Math.max(0, start));
    const named = [...optionValues(options, { letter: "p" }), ...optionValues(options, { name: "package" })];
    if (at >= 0) return named.length > 0 ? named : words.slice(start, start + 1);
  }
  const installing = Object.hasOwn(INSTALLING, manager) ? INSTALLING[manager] : undefined;
  const at = installing === undefined ? -1 : subcommandOf(words, installing);
  return at < 0 ? [] : operands(words.slice(at), "rceitfCn");
}

/** The subcommand, after options that may have a value each. */
function subcommandOf(words: readonly Word[], names: ReadonlySet<string>): number {
  for (let index = 1; index < words.length; index += 1) {
    const { text } = words[index] ?? { text: "" };
    if (/^[-+]/.test(text)) continue;
    if (names.has(text)) return index;
    if (!/^-[^=]*$/.test(words[index - 1]?.text ?? "") || index === 1) return -1;
  }
  return -1;
}

/** Where `pip` stands as a module of python; 0 if nowhere. */
function moduleAt(name: string, words: readonly Word[]): number {
  if (!/^python[0-9.]*$/.test(name)) return 0;
  const at = words.findIndex(({ text }, index) => index > 0 && /^-[A-Za-z]*m/.test(text));
  if (at < 0) return 0;
  const attached = /^-[A-Za-z]*?m(.+)$/.exec(words[at]?.text ?? "")?.[1];
  return attached === "pip" ? at : words[at + 1]?.text === "pip" ? at + 1 : 0;
}

function packageName(text: string): string {
  if (/^[./~]|^git\+|^[\w-]+\//.test(text) || text.includes("://")) return text;
  const version = text.indexOf("@", 1);
  // `left-pad@npm:other` and `left-pad@owner/repository` are something else than their name says.
  if (version > 0 && /[:/]/.test(text.slice(version))) return text;
  const name = version < 0 ? text : text.slice(0, version);
  const end = name.search(/[[<>=!~;\s]/);
  return (end < 0 ? name : name.slice(0, end)).toLowerCase();
}
