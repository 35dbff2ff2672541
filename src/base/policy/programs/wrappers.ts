/** Programs that run another one they are given as words. */
import { isUnknown, type Word, unknownWord } from "../shell/script.ts";
import {
  firstOperand,
  hiddenCommand,
  joinWords,
  optionValues,
  restOfWord,
  type Finding,
  type Inspect,
  type OptionShape,
} from "./finding.ts";

interface Wrapper extends OptionShape {
  /** Words between the options and the command. */
  readonly operands?: number;
  /** NAME=value words may stand before the command. */
  readonly assignments?: boolean;
  /** Changes who runs it or where, so it is judged itself, too. */
  readonly privileged?: boolean;
}

const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  nice: { letters: "n", names: ["adjustment"] },
  nohup: {},
  timeout: { letters: "ks", names: ["kill-after", "signal"], operands: 1 },
  time: { letters: "fo", names: ["format", "output"] },
  command: {},
  builtin: {},
  exec: { letters: "a" },
  noglob: {},
  nocorrect: {},
  setsid: {},
  stdbuf: { letters: "ioe", names: ["input", "output", "error"] },
  ionice: { letters: "cn", names: ["class", "classdata"] },
  chrt: { letters: "TPD", operands: 1 },
  taskset: { operands: 1 },
  unbuffer: {},
  fakeroot: {},
  eatmydata: {},
  chronic: {},
  caffeinate: { letters: "tw" },
  faketime: { operands: 1 },
  "xvfb-run": { letters: "efnpsw" },
  "dbus-run-session": {},
  setarch: { operands: 1 },
  linux32: {},
  linux64: {},
  i386: {},
  x86_64: {},
  prlimit: {},
  choom: { letters: "n" },
  numactl: { letters: "NmCipxH" },
  valgrind: {},
  rlwrap: { letters: "abcCDfHlPqsStTzw" },
  "ssh-agent": { letters: "aEOPt" },
  "systemd-run": { letters: "HMpEu", names: ["unit", "property", "setenv", "slice", "description"] },
  "cross-env": { assignments: true },
  gtimeout: { letters: "ks", names: ["kill-after", "signal"], operands: 1 },
  gnice: { letters: "n", names: ["adjustment"] },
  gnohup: {},
  gtime: { letters: "fo", names: ["format", "output"] },
  gstdbuf: { letters: "ioe", names: ["input", "output", "error"] },
  "start-stop-daemon": { letters: "xapusncdPNIkRrg" },
  busybox: {},
  toybox: {},
  sudo: {
    letters: "uUgpCcDhRrtT",
    names: ["user", "group", "prompt", "chdir", "host", "role", "type", "chroot", "other-user", "command-timeout", "close-from"],
    assignments: true,
    privileged: true,
  },
  doas: { letters: "uC", assignments: true, privileged: true },
  pkexec: { names: ["user"], privileged: true },
  chroot: { names: ["userspec", "groups"], operands: 1, privileged: true },
  unshare: { privileged: true },
  nsenter: { letters: "tSG", names: ["target", "setuid", "setgid"], privileged: true },
  setpriv: { names: ["reuid", "regid", "groups"], privileged: true },
  strace: { letters: "aeEIoOPsSuX", privileged: true },
  ltrace: { letters: "aAeFlnosuwx", privileged: true },
  gosu: { operands: 1, privileged: true },
  "su-exec": { operands: 1, privileged: true },
};

function unwrap(wrapper: Wrapper, words: readonly Word[]): Finding {
  let start = firstOperand(words, wrapper);
  // An option that is known only later could swallow the command or bring one.
  if (words.slice(1, start).some(isUnknown)) return hiddenCommand("its options are known only when it runs");
  const assigned: Word[] = [];
  while (wrapper.assignments === true && /^[A-Za-z_]\w*=/.test(words[start]?.text ?? "")) {
    const word = words[start];
    if (word !== undefined) assigned.push(word);
    start += 1;
  }
  start += wrapper.operands ?? 0;
  const inner = words.slice(start);
  const transparent = wrapper.privileged !== true;
  if (inner.length === 0) return {};
  return { transparent, runs: [[...assigned, ...inner]] };
}

function env(given: readonly Word[]): Finding {
  // A lone `-` is `-i`.
  const words = given.filter(({ text }, index) => index === 0 || text !== "-");
  const wrapper: Wrapper = { letters: "auCS", names: ["argv0", "unset", "chdir", "split-string"], assignments: true };
  const options = words.slice(0, firstOperand(words, wrapper));
  const scripts = [...optionValues(options, { letter: "S" }), ...optionValues(options, { name: "split-string" })];
  const found = unwrap(wrapper, words);
  return scripts.length === 0 ? found : { ...found, transparent: true, scripts };
}

function exact(words: readonly Word[]): Finding {
  // `command -v name` only looks a name up.
  if (/^-[vV]/.test(words[1]?.text ?? "")) return {};
  return unwrap({}, words);
}

const XARGS: OptionShape = {
  letters: "aEIiLnPsd",
  names: ["arg-file", "eof", "replace", "max-lines", "max-args", "max-procs", "max-chars", "delimiter", "process-slot-var"],
};

/** What comes from the input is unknown, and stands in place of {} or at the end. */
function xargs(words: readonly Word[]): Finding {
  const start = firstOperand(words, XARGS);
  if (words.slice(1, start).some(isUnknown)) return hiddenCommand("its options are known only when it runs");
  const options = words.slice(0, start);
  const given = [...optionValues(options, { letter: "I" }), ...optionValues(options, { name: "replace" })].map(({ text }) => text);
  const marks = [...given, "{}"].filter((text) => text !== "");
  // In a text that a shell runs, what comes from the input could be anything.
  const inner = words.slice(start).map((word) => (marks.some((mark) => word.text.includes(mark)) ? { ...unknownWord(word.text) } : word));
  return inner.length === 0 ? {} : { transparent: true, runs: [[...inner, unknownWord("...")]] };
}

function parallel(words: readonly Word[]): Finding {
  const start = firstOperand(words, { letters: "jNnLSaI", names: ["jobs", "max-args", "sshlogin", "arg-file", "colsep", "joblog"] });
  const end = words.findIndex(({ text }) => text.startsWith(":::"));
  const inner = words.slice(start, end < 0 ? undefined : Math.max(start, end));
  if (inner.length === 0) return { opaque: { why: "it runs the lines it is given", kind: "hidden", later: true } };
  return { transparent: true, scripts: [joinWords([...inner, unknownWord("$arguments")])] };
}

/** Everything up to `;` or `+` after -exec and its like. */
function find(words: readonly Word[]): Finding {
  const runs: Word[][] = [];
  for (let index = 1; index < words.length; index += 1) {
    if (!/^-(exec|execdir|ok|okdir)$/.test(words[index]?.text ?? "")) continue;
    const inner: Word[] = [];
    for (index += 1; index < words.length; index += 1) {
      const word = words[index];
      if (word === undefined || word.text === ";" || (word.text === "+" && inner.at(-1)?.text === "{}")) break;
      inner.push(word);
    }
    runs.push(inner.map((word) => (word.text.includes("{}") ? unknownWord(word.text) : word)));
  }
  const first = words.findIndex(({ text }, index) => index > 0 && /^[-(!]/.test(text));
  if (words.some(({ text }) => text === "-delete")) runs.push(deletion(words, first));
  return { runs: runs.filter(({ length }) => length > 0) };
}

/** `find FOLDER -delete` removes everything; with tests, some of it. */
function deletion(words: readonly Word[], first: number): Word[] {
  const folders = words.slice(1, first);
  const all = words.slice(first).every(({ text }) => text === "-delete");
  const flat = (text: string): Word => ({ text, match: text, quoted: false, glob: false, tilde: false });
  return [flat("rm"), flat(all ? "-rf" : "-r"), ...(folders.length === 0 ? [flat(".")] : folders)];
}

function fd(words: readonly Word[]): Finding {
  const at = words.findIndex(({ text }) => /^(-[xX]|--exec|--exec-batch)$/.test(text));
  if (at >= 0) return { runs: [[...words.slice(at + 1), unknownWord("...")]] };
  const program = words.find(({ text }) => text.startsWith("--exec"));
  if (program !== undefined) return { runs: [[restOfWord(program, program.text.indexOf("=") + 1), unknownWord("...")]] };
  return words.some(({ text }) => /^-[a-zA-Z]*[xX]/.test(text)) ? hiddenCommand("an option of it runs a command") : {};
}

/** `npm exec -- tool`, `npx tool`, `uv run tool`: the runner is judged, and what it runs if a rule names it. */
function runner(subcommands: readonly string[]): Inspect {
  return (words) => {
    const at = subcommands.length === 0 ? 0 : words.findIndex(({ text }, index) => index > 0 && subcommands.includes(text));
    if (at < 0) return {};
    const start = firstOperand(words, { letters: "pc", names: ["package", "call"] }, at + 1);
    const options = words.slice(0, start);
    const scripts = [...optionValues(options, { letter: "c" }), ...optionValues(options, { name: "call" })];
    const inner = words.slice(start);
    return { scripts, runs: inner.length === 0 ? [] : [inner], lenient: true };
  };
}

export const WRAPPING: Readonly<Record<string, Inspect>> = {
  ...Object.fromEntries(Object.entries(WRAPPERS).map(([name, wrapper]): [string, Inspect] => [name, (words) => unwrap(wrapper, words)])),
  env,
  command: exact,
  xargs,
  gxargs: xargs,
  parallel,
  find,
  gfind: find,
  cmake: (words) => (words[1]?.text === "-E" ? runner(["env", "time"])(words) : {}),
  direnv: (words) => (words[1]?.text === "exec" ? { transparent: true, runs: [words.slice(3)] } : {}),
  fd,
  fdfind: fd,
  npm: runner(["exec", "x"]),
  pnpm: runner(["exec", "dlx"]),
  yarn: runner(["exec", "dlx"]),
  npx: runner([]),
  bunx: runner([]),
  uv: runner(["run"]),
  uvx: runner([]),
  poetry: runner(["run"]),
  bundle: runner(["exec"]),
};
