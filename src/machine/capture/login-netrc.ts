/** A .netrc: words, whatever lines they stand on. */
import { ofUser } from "./addresses.ts";
import type { Login, Read, Unusable } from "./logins.ts";

export function netrc(text: string): Read {
  const logins: Login[] = [];
  const unusable: Unusable[] = [];
  const written: ((placeholder: string) => string)[] = [];
  const words = [...withoutMacros(text).matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
    ([, quoted, bare]) => quoted?.replaceAll(/\\(.)/g, "$1") ?? bare ?? "",
  );
  let machine: { host: string; login: string } | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    if (word === "default") machine = { host: "", login: "" };
    else if (word === "machine") machine = { host: (words[(at += 1)] ?? "").toLowerCase(), login: "" };
    else if (word === "login" && machine !== undefined) machine.login = words[(at += 1)] ?? "";
    else if (word === "account") at += 1;
    else if (word === "password" && machine !== undefined) {
      const { host } = machine;
      const value = words[(at += 1)] ?? "";
      // The name may stand behind the password.
      if (words[at + 1] === "login") machine.login = words[at + 2] ?? "";
      const user = machine.login;
      const what = `${ofUser(user)} of ${host || "any host"}`;
      if (host === "") unusable.push({ what, reason: "it is for any host" });
      else {
        logins.push({ host, detail: "", what, value });
        const login = user === "" ? "" : ` login ${quotedWord(user)}`;
        written.push((placeholder) => `machine ${host}${login} password ${placeholder}\n`);
      }
    }
  }
  return { logins, unusable, shown: (placeholders) => keptLines(placeholders, written) };
}

function keptLines(placeholders: readonly (string | undefined)[], written: readonly ((placeholder: string) => string)[]): string {
  return placeholders.map((placeholder, index) => (placeholder === undefined ? "" : (written[index]?.(placeholder) ?? ""))).join("");
}

/** Without comments, and macros up to the empty line behind them. */
function withoutMacros(text: string): string {
  return text.replaceAll(/^\s*macdef\b[\s\S]*?(?:\n[ \t]*\n|(?![\s\S]))/gm, "").replaceAll(/^\s*#.*$/gm, "");
}

function quotedWord(word: string): string {
  return /[\s"\\]/.test(word) ? `"${word.replaceAll(/["\\]/g, "\\$&")}"` : word;
}
