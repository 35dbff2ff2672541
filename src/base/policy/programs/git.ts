/** Git runs commands for many an option, setting and subcommand. */
import { isUnknown, type Word } from "../shell/script.ts";
import { hiddenCommand, joinWords, optionValues, type Finding } from "./finding.ts";

const RUNS = hiddenCommand("a setting or option of git runs a command");
const SAFE_SETTINGS =
  /^(color\.|user\.(name|email)=|advice\.|core\.quotepath=|log\.|status\.|core\.(pager|editor)=(cat|true|:)?$|init\.defaultbranch=|commit\.gpgsign=false)/i;
const RISKY_SETTING =
  /^(alias\.|core\.(pager|editor|sshcommand|fsmonitor|hookspath|gitproxy|askpass|alternaterefscommand|attributesfile|worktree)|.*\.(external|textconv|command|cmd|clean|smudge|process|driver|program|helper|update|vcs|uploadpack|receivepack|path|tool|browser|man)\b|pager\.|diff\.external|sequence\.editor|gpg\.|include|credential|url\.|uploadpack|remote\.|protocol\.|trailer\.|submodule\.|interactive\.difffilter|sendemail|web\.|init\.templatedir|http\.proxy|ssh\.)/i;
const RISKY_OPTION =
  /^(--exec-path=|--config-env|--upload-pack|--receive-pack|--exec=|--extcmd|--ext-diff|--open-files-in-pager|--output|--template|--upload-archive|-O.|--tool|--gpg-sign=|--smtp|--sendmail)/;
/** Long names may be shortened. */
const LONG_RISKS = "--upload-pack --receive-pack --extcmd --ext-diff --open-files-in-pager --output --template --upload-archive".split(" ");
const COMMAND_TRANSPORT = /^ext::|^fd::|^--rem[a-z]*=(ext|fd)::/;

function isRisky(text: string): boolean {
  return RISKY_OPTION.test(text) || (text.length > 4 && LONG_RISKS.some((name) => name.startsWith(text.split("=")[0] ?? text)));
}

/** Index of the subcommand, after the options that stand before it. */
export function subcommandAt(words: readonly Word[]): number {
  let index = 1;
  while (index < words.length && words[index]?.text.startsWith("-") === true) {
    index += /^(-C|-c|--git-dir|--work-tree|--namespace|--super-prefix|--config-env|--exec-path)$/.test(words[index]?.text ?? "") ? 2 : 1;
  }
  return index;
}

export function git(words: readonly Word[]): Finding {
  const at = subcommandAt(words);
  if (words.slice(1, at + 1).some(isUnknown)) return hiddenCommand("what git does is known only then");
  const before = words.slice(0, at);
  const settings = before.flatMap(({ text }, index) =>
    text === "-c" ? [words[index + 1]?.text ?? ""] : /^-c./.test(text) ? [text.slice(2)] : [],
  );
  if (settings.some((setting) => !SAFE_SETTINGS.test(setting))) return RUNS;
  if (before.some(({ text }) => isRisky(text) || /^--(git-dir|work-tree|exec-path)/.test(text))) return RUNS;
  return subcommand(words[at]?.text ?? "", words.slice(at));
}

function subcommand(name: string, words: readonly Word[]): Finding {
  if (words.some(({ text }) => COMMAND_TRANSPORT.test(text))) return RUNS;
  const rest = words.slice(1);
  if (name === "config") return config(rest);
  if (name === "bisect" && rest[0]?.text === "run") return { runs: [rest.slice(1)] };
  if (name === "submodule") {
    const at = rest.findIndex(({ text }) => text === "foreach");
    const inner = at < 0 ? [] : rest.slice(at + 1).filter(({ text }) => text !== "--recursive" && text !== "-q" && text !== "--quiet");
    return inner.length > 0 ? { scripts: [joinWords(inner)] } : {};
  }
  if (name === "rebase") return { scripts: [...optionValues(words, { letter: "x" }), ...optionValues(words, { name: "exec" })] };
  if (RUNNING.has(name)) return RUNS;
  if (name === "clone" && cloneRuns(words)) return RUNS;
  if ((name === "ls-remote" || name === "archive" || name === "fetch-pack" || name === "send-pack") && rest.some(isExec)) return RUNS;
  if (name === "difftool" && rest.some(({ text }) => /^(-x|--ext)/.test(text))) return RUNS;
  if (name === "grep" && rest.some(({ text }) => /^-[a-zA-Z]*O|^--open/.test(text))) return RUNS;
  // Message texts may look like anything, other operands not.
  return name !== "commit" && rest.some(({ text }) => isRisky(text)) ? RUNS : {};
}

const RUNNING = new Set([
  "filter-branch",
  "send-email",
  "instaweb",
  "daemon",
  "mergetool",
  "remote-ext",
  "remote-fd",
  "hook",
  "for-each-repo",
]);

function isExec({ text }: Word): boolean {
  return text.startsWith("--exec");
}

/** `-u` names a program of the other side, which is this one for a folder; settings are those of `-c` before a subcommand. */
function cloneRuns(words: readonly Word[]): boolean {
  const settings = [...optionValues(words, { letter: "c" }), ...optionValues(words, { name: "config" })];
  return optionValues(words, { letter: "u" }).length > 0 || settings.some(({ text }) => !SAFE_SETTINGS.test(text));
}

function config(rest: readonly Word[]): Finding {
  const risky = rest.some((word) => isUnknown(word) || RISKY_SETTING.test(word.text) || word.text.startsWith("!"));
  return risky ? RUNS : {};
}
