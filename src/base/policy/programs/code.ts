/** Programs whose arguments hold code, or options that run something. */
import { isUnknown, plainWord, type Word } from "../shell/script.ts";
import { git } from "./git.ts";
import { hiddenCommand, optionValues, type Finding, type Inspect } from "./finding.ts";
import { sedRuns } from "./sed.ts";

const CODE: Finding = { opaque: { why: "it runs code that is not looked into", kind: "code" } };
const PIPED: Finding = { opaque: { why: "it runs code that is not looked into", kind: "code", later: true } };
const OPTION = hiddenCommand("an option of it runs a command");

/** An interpreter with code on its command line, or from its input. */
function interpreter(letters: string, names: readonly string[] = []): Inspect {
  return (words) => {
    const rest = words.slice(1);
    const inline = rest.some(
      ({ text }) =>
        new Set(names).has(text.split("=")[0] ?? "") ||
        (/^-[A-Za-z]+/.test(text) &&
          text
            .slice(1)
            .split("")
            .some((each) => letters.includes(each))),
    );
    const first = rest[0];
    if (!inline && (first === undefined || first.text === "-")) return PIPED;
    return inline || (first !== undefined && isUnknown(first)) ? CODE : {};
  };
}

function awk(words: readonly Word[]): Finding {
  const rest = words.slice(1).filter(({ text }, index) => !/^-F./.test(text) && words[index]?.text !== "-F");
  // A `>` writes only after a print; before one it compares.
  const risky = rest.some((word) => isUnknown(word) || /system|getline|[|@]|print[^]*>|-f|-[ilE]|--/.test(word.text));
  return risky ? hiddenCommand("its program may run commands or write files") : {};
}

function sed(words: readonly Word[]): Finding {
  return sedRuns(words) ? hiddenCommand("its script may run commands or write files") : {};
}

/** `tar cIf ./x a.tar` in the old style, as `tar -c -I ./x -f a.tar`. */
export function tarWords(words: readonly Word[]): readonly Word[] {
  const [program, bundle, ...rest] = words;
  if (program === undefined || bundle === undefined || bundle.text.startsWith("-") || isUnknown(bundle)) return words;
  const values = [...rest];
  const spread = bundle.text.split("").flatMap((letter) => {
    const value = "fbgHIKLNTVXCF".includes(letter) ? values.shift() : undefined;
    return [plainWord(`-${letter}`), ...(value === undefined ? [] : [value])];
  });
  return [program, ...spread, ...values];
}

const TAR_COMMANDS = ["to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command"];
const PACKERS = /^(?:gzip|bzip2|xz|zstd|lz4|lzip|pigz|pbzip2)(?: -T?\d+)?$/;
function tar(given: readonly Word[]): Finding {
  const words = tarWords(given);
  const scripts = [
    ...TAR_COMMANDS.flatMap((name) => optionValues(words, { name })),
    ...optionValues(words, { letter: "I" }),
    ...optionValues(words, { letter: "F" }),
  ];
  const checkpoints = optionValues(words, { name: "checkpoint-action" }).filter(({ text }) => text.startsWith("exec"));
  const texts = [
    ...scripts,
    ...checkpoints.map((word) => ({ ...word, text: word.text.replace(/^exec=?/, ""), match: word.match.replace(/^exec=?/, "") })),
  ].filter((word) => isUnknown(word) || !PACKERS.test(word.text));
  return texts.length > 0 ? { ...OPTION, scripts: texts } : {};
}

/** Any word that starts with one of these runs something: long names may be shortened, letters stand in a bundle. */
function options(...starts: readonly string[]): Inspect {
  return (words) => (words.slice(1).some(({ text }) => starts.some((start) => isOption(text, start))) ? OPTION : {});
}

function isOption(text: string, start: string): boolean {
  if (text.startsWith(start)) return true;
  if (start.startsWith("--")) return text.length > 3 && start.startsWith(text.split("=")[0] ?? text);
  const letter = /^-([A-Za-z])$/.exec(start)?.[1];
  return letter !== undefined && /^-[A-Za-z0-9]+$/.test(text) && text.includes(letter);
}

/** As they are written, and not shortened. */
function exactOptions(...names: readonly string[]): Inspect {
  return (words) => (words.slice(1).some(({ text }) => names.includes(text.split("=")[0] ?? "")) ? OPTION : {});
}

const editor: Inspect = (words) =>
  words.slice(1).some((word) => isUnknown(word) || /^([+]|-[csSueE]|--(cmd|eval|exec|funcall|load|script|batch))/.test(word.text))
    ? OPTION
    : {};

const make: Inspect = (words) =>
  words.slice(1).some(({ text }) => /^(-[a-zA-Z]*E|--ev|SHELL=|\.SHELLFLAGS=|MAKEFLAGS=)/.test(text)) ||
  [...optionValues(words, { letter: "f" }), ...optionValues(words, { name: "file" }), ...optionValues(words, { name: "makefile" })].some(
    ({ text }) => text === "-" || /^\/(?:dev|proc)\//.test(text),
  )
    ? OPTION
    : {};

/** Long names may be shortened, as long as they are no others. */
const NPM_RISKS = /^--(scr[a-z]*(-[a-z]*)?|node-o[a-z]*|shell|edi[a-z]*|view[a-z]*|brow[a-z]*|git|userc[a-z]*|globalc[a-z]*)(=|$)/;
export const npmOptions: Inspect = (words) => (words.slice(1).some(({ text }) => NPM_RISKS.test(text)) ? OPTION : {});

export const CODES: Readonly<Record<string, Inspect>> = {
  python: interpreter("cm"),
  python2: interpreter("cm"),
  python3: interpreter("cm"),
  pypy: interpreter("cm"),
  pypy3: interpreter("cm"),
  node: interpreter("epr", ["--eval", "--print", "--require", "--import", "--loader", "--experimental-loader"]),
  nodejs: interpreter("epr", ["--eval", "--print", "--require", "--import", "--loader"]),
  deno: (words) => (words[1]?.text === "eval" ? CODE : {}),
  bun: interpreter("epr", ["--eval", "--print", "--preload"]),
  perl: interpreter("eEMmI"),
  ruby: interpreter("erI"),
  php: interpreter("rBRE"),
  lua: interpreter("el"),
  luajit: interpreter("el"),
  Rscript: interpreter("e"),
  R: interpreter("e"),
  osascript: interpreter("e"),
  guile: interpreter("c"),
  groovy: interpreter("e"),
  julia: interpreter("eE"),
  scala: interpreter("e"),
  tclsh: () => CODE,
  expect: interpreter("c"),
  sqlite3: (words) =>
    words.slice(1).some(({ text }) => /\.(shell|system|import|load|output|once)|load_extension|-cmd|-init/.test(text)) ? OPTION : {},
  psql: (words) => (words.slice(1).some(({ text }) => /\\!|\\g|\\o|program/i.test(text)) ? OPTION : {}),
  jq: (words) => (words.slice(1).some(({ text }) => text.startsWith("-L") || text.startsWith("--from-file")) ? CODE : {}),
  awk,
  gawk: awk,
  mawk: awk,
  nawk: awk,
  sed,
  gsed: sed,
  tar,
  bsdtar: tar,
  gtar: tar,
  git,
  rg: exactOptions("--pre", "--hostname-bin"),
  install: options("--strip-program"),
  ginstall: options("--strip-program"),
  ag: options("--pager"),
  less: options("+", "-k", "--lesskey"),
  man: options("-P", "--pager", "-H", "--html"),
  rsync: options("-e", "--rsh", "--rsync-path"),
  scp: options("-o", "-S"),
  sftp: options("-o", "-S", "-b"),
  zip: (words) => (words.slice(1).some(({ text }) => /^-[a-zA-Z]*TT|^--unz/.test(text)) ? OPTION : {}),
  split: options("--filter"),
  sort: options("--compress-program"),
  curl: options("--config", "-K"),
  wget: options("--use-askpass", "--config", "-e", "--execute", "--post-file"),
  go: options("-exec", "-toolexec", "--exec", "-vettool"),
  cargo: options("--config"),
  pip: options("--index-url", "--extra-index-url", "-i", "--find-links", "-f", "--trusted-host"),
  pip3: options("--index-url", "--extra-index-url", "-i", "--find-links", "-f", "--trusted-host"),
  vim: editor,
  vi: editor,
  view: editor,
  nvim: editor,
  ex: editor,
  emacs: editor,
  ed: () => ({ opaque: { why: "it runs what it reads from its input", kind: "hidden", later: true } }),
  gdb: () => CODE,
  make,
  gmake: make,
};
