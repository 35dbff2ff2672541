/** Variables that make programs run or load something else. */
import type { Assignment, Word } from "../shell/script.ts";
import { isUnknown } from "../shell/script.ts";
import { optionValues } from "./finding.ts";

const RISKY = new RegExp(
  `^(?:${[
    "PATH|IFS|ENV|BASH_(?:ENV|CMDS|ALIASES|LOADABLES_PATH|FUNC_.*)|CDPATH|SHELL|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS[0-4]|ZDOTDIR|FPATH",
    "LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|GLIBC_TUNABLES|OPENSSL_(?:CONF|MODULES|ENGINES).*",
    "LESS|LESSOPEN|LESSCLOSE|LESSKEY.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|MANOPT|EXINIT|VIMINIT|VIM|VIMRUNTIME",
    "GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT|OPTIONAL_LOCKS).*|SSH_ASKPASS.*|SUDO_ASKPASS",
    "NODE_(?:OPTIONS|PATH|REPL_EXTERNAL_MODULE)|ELECTRON_RUN_AS_NODE|DENO_DIR",
    "PYTHON(?:PATH|STARTUP|HOME|INSPECT|WARNINGS|BREAKPOINT|USERBASE|PLATLIBDIR|PYCACHEPREFIX)|PYTEST_(?:ADDOPTS|PLUGINS)|COVERAGE_PROCESS_START",
    "PERL5?(?:OPT|LIB|DB|5DB).*|RUBY(?:OPT|LIB)|GEM_(?:HOME|PATH)|BUNDLE_.*|PHPRC|PHP_INI_SCAN_DIR|LUA_(?:INIT|PATH|CPATH).*|R_PROFILE.*|R_ENVIRON.*|JULIA_LOAD_PATH",
    "JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|JAVA_OPTS|MAVEN_(?:OPTS|ARGS)|GRADLE_OPTS|CLASSPATH|DOTNET_(?:STARTUP_HOOKS|ADDITIONAL_DEPS)|(?:CORECLR|COR)_PROFILER.*",
    "MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|GO(?:FLAGS|ROOT|ENV|TOOLDIR|TOOLCHAIN|PROXY)|CGO_.*|CARGO_(?!TERM_).*|RUSTC.*|RUSTFLAGS|CC|CXX|AR|LD",
    "npm_config_.*|pnpm_config_.*|YARN_.*|COREPACK_.*|PIP_(?!DISABLE_PIP_VERSION_CHECK|NO_CACHE_DIR|NO_INPUT|PROGRESS_BAR).*|UV_.*INDEX.*",
    "TAR_OPTIONS|GZIP|ZIPOPT|UNZIP|RIPGREP_CONFIG_PATH|RSYNC_.*|CVS_RSH|CURL_HOME|WGETRC|SYSTEM_WGETRC|DOCKER_HOST",
    "HOME|XDG_(?:CONFIG|DATA)_.*|(?:https?|all|ftp|no)_proxy|HOSTALIASES",
  ].join("|")})$`,
);
/** npm and what speaks with proxies take them in any case. */
const ANY_CASE = /^(?:p?npm_config_|(?:https?|all)_proxy$)/i;

const TOOL = /^(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?:-\d+)?$/;
const NODE_SETTING = /^--(?:max-old-space-size=\d+|no-warnings|no-deprecation|enable-source-maps|experimental-vm-modules|trace-warnings)$/;
const FOLDERS = /^(?:\.|(?:\.\/)?[\w-]+(?:\/[\w-]+)*)\/?$/;

export function isRiskyVariable(name: string, value: Word): boolean {
  return (RISKY.test(name) || ANY_CASE.test(name)) && (isUnknown(value) || !isUsual(name, value.text));
}

/** Values that people write every day, and that run nothing that would not run anyway. */
function isUsual(name: string, value: string): boolean {
  if (name.endsWith("PAGER")) return value === "cat" || value === "";
  if (name.endsWith("EDITOR") || name === "VISUAL") return value === "true" || value === ":" || value === "cat";
  if (name === "CC" || name === "CXX") return TOOL.test(value);
  if (name === "NODE_OPTIONS") return value.split(" ").every((each) => NODE_SETTING.test(each));
  // Code of the project, which its tests load anyway.
  return name === "PYTHONPATH" && value.split(":").every((each) => FOLDERS.test(each));
}

/** Builtins that put their input or a text into a variable. */
export function namedVariables(program: string, words: readonly Word[]): Assignment[] {
  const unknown = (word: Word): Assignment => ({ name: isUnknown(word) ? "PATH" : word.text.replace(/\[.*/, ""), value: word });
  if (program === "printf") return optionValues(words.slice(0, 3), { letter: "v" }).map(unknown);
  if (program === "read" || program === "mapfile" || program === "readarray" || program === "getopts")
    return words.slice(1).flatMap((word) => (word.text.startsWith("-") ? [] : [unknown(word)]));
  if (program !== "let") return [];
  return words.slice(1).map((word) => ({ name: isUnknown(word) ? "PATH" : (/[A-Za-z_]\w*/.exec(word.text)?.[0] ?? ""), value: word }));
}
