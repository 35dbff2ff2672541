/** Programs that run a text as shell commands. */
import { isUnknown, type Word } from "../shell/script.ts";
import { firstOperand, hiddenCommand, joinWords, optionValues, type Finding, type Inspect } from "./finding.ts";

/** `-c` may stand in a bundle such as `-lc`; the text is the next operand. */
function shell(words: readonly Word[]): Finding {
  for (let index = 1; index < words.length; index += 1) {
    const { text } = words[index] ?? { text: "" };
    if (/^--(rcfile|init-file)/.test(text)) return hiddenCommand("it runs a script that is not looked into");
    if (/^[-+][a-zA-Z]*o$/i.test(text) && !text.slice(1, -1).includes("c")) {
      index += 1;
      continue;
    }
    if (/^-[a-zA-Z]*c/.test(text) || text === "--command") {
      const start = firstOperand(words, { letters: "oO" }, index + 1);
      const script = words[start];
      return script === undefined ? {} : { transparent: true, scripts: [script] };
    }
    if (/^-[a-zA-Z]*s/.test(text)) return READS;
    if (words[index] !== undefined && isUnknown(words[index] as Word)) return hiddenCommand("what it runs is known only then");
    if (/^[-+]/.test(text) && text !== "-") continue;
    // A script file is not read, so a rule has to name it.
    return text === "-" || STANDARD_INPUT.test(text)
      ? READS
      : { opaque: { why: "it runs a script that is not looked into", kind: "code" } };
  }
  return words.some(({ text }) => text === "--version" || text === "--help") ? {} : READS;
}

const STANDARD_INPUT = /^\/(?:dev\/(?:stdin|fd\/0)|proc\/(?:self|thread-self)\/fd\/0)$/;
const READS: Finding = { opaque: { why: "it runs what it reads from its input", kind: "hidden", later: true }, readsInput: true };

function joinedFrom(letters: string, names: readonly string[] = [], skipped = 0): Inspect {
  return (words) => {
    const inner = words.slice(firstOperand(words, { letters, names }) + skipped);
    return inner.length === 0 ? {} : { scripts: [joinWords(inner)] };
  };
}

function option(letter: string, name: string): Inspect {
  return (words) => ({ scripts: [...optionValues(words, { letter }), ...optionValues(words, { name })] });
}

function evaluate(words: readonly Word[]): Finding {
  const inner = words.slice(words[1]?.text === "--" ? 2 : 1);
  return inner.length === 0 ? { transparent: true } : { transparent: true, scripts: [joinWords(inner)] };
}

function trap(words: readonly Word[]): Finding {
  const text = words[firstOperand(words, {})];
  return text === undefined || text.text === "" || text.text === "-" ? { transparent: true } : { transparent: true, scripts: [text] };
}

function alias(words: readonly Word[]): Finding {
  const values = words.slice(1).flatMap((word) => {
    const at = word.text.indexOf("=");
    return at < 0 ? [] : [{ ...word, text: word.text.slice(at + 1), match: word.match.slice(word.match.indexOf("=") + 1) }];
  });
  return { transparent: true, scripts: values };
}

const SSH_LETTERS = "bcDEeFIiJLlmOopQRSWw";
function ssh(words: readonly Word[]): Finding {
  const hooks = optionValues(words, { letter: "o" }).filter(({ text }) => /^(proxy|local|knownhosts)\w*command/i.test(text));
  if (hooks.length > 0) return hiddenCommand("an option of it runs a command");
  return joinedFrom(SSH_LETTERS, [], 1)(words);
}

function watch(words: readonly Word[]): Finding {
  return { ...joinedFrom("nq", ["interval", "equexit"])(words), transparent: true };
}

function flock(words: readonly Word[]): Finding {
  const inner = words.slice(firstOperand(words, { letters: "wE", names: ["timeout", "conflict-exit-code"] }) + 1);
  const [first, script] = inner;
  if (script !== undefined && (first?.text === "-c" || first?.text === "--command")) return { transparent: true, scripts: [script] };
  return inner.length === 0 ? {} : { transparent: true, runs: [inner] };
}

function su(words: readonly Word[]): Finding {
  const scripts = [...optionValues(words, { letter: "c" }), ...optionValues(words, { name: "command" })];
  return scripts.length > 0 ? { scripts } : READS;
}

function source(words: readonly Word[]): Finding {
  if (STANDARD_INPUT.test(words[1]?.text ?? "")) return READS;
  return { opaque: { why: "it runs a script that is not looked into", kind: "code" } };
}

/** One word is a text for the shell inside, several are a program with its words. */
function inside(inner: readonly Word[]): Finding {
  const [first] = inner;
  if (first === undefined) return {};
  return inner.length === 1 ? { scripts: [first], lenient: true } : { runs: [inner], lenient: true };
}

const TMUX_RUNS =
  /^(new|new-session|neww|new-window|splitw|split-window|respawnp|respawn-pane|respawnw|respawn-window|run|run-shell|popup|display-popup)$/;
function tmux(words: readonly Word[]): Finding {
  const at = words.findIndex(({ text }) => TMUX_RUNS.test(text));
  return at < 0 ? {} : inside(words.slice(firstOperand(words, { letters: "ceFlnstxyhw" }, at + 1)));
}

function screen(words: readonly Word[]): Finding {
  return inside(words.slice(firstOperand(words, { letters: "ceDhpSsTt" })));
}

const SHELL_NAMES = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "pwsh"] as const;

export const SHELLS: Readonly<Record<string, Inspect>> = {
  ...Object.fromEntries(SHELL_NAMES.map((name): [string, Inspect] => [name, shell])),
  eval: evaluate,
  trap,
  alias,
  ssh,
  watch,
  flock,
  su,
  runuser: su,
  script: (words) => {
    const { scripts = [] } = option("c", "command")(words);
    return scripts.length > 0 ? { scripts } : READS;
  },
  "nix-shell": option("\0", "run"),
  source,
  ".": source,
  entr: (words) => ({ runs: [words.slice(firstOperand(words, {}))] }),
  mapfile: (words) => (optionValues(words, { letter: "C" }).length > 0 ? hiddenCommand("an option of it runs a command") : {}),
  readarray: (words) => (optionValues(words, { letter: "C" }).length > 0 ? hiddenCommand("an option of it runs a command") : {}),
  at: () => READS,
  batch: () => READS,
  enable: (words) => (optionValues(words, { letter: "f" }).length > 0 ? hiddenCommand("it loads code into the shell") : {}),
  hash: (words) => (optionValues(words, { letter: "p" }).length > 0 ? hiddenCommand("it gives a program another name") : {}),
  tmux,
  screen,
  sg: (words) => {
    const scripts = optionValues(words, { letter: "c" });
    return scripts.length > 0 ? { scripts } : READS;
  },
  hyperfine: (words) => ({ scripts: words.slice(1).filter(({ text }) => !text.startsWith("-") && !/^\d+$/.test(text)), lenient: true }),
  crontab: () => hiddenCommand("it runs commands later"),
};
