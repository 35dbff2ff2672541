/** Reads settings as git does (git-config, "Syntax"), without running git. */
import type { Setting } from "./gitconfig.ts";

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\", '"': '"', n: "\n", t: "\t", b: "\b", "\n": "" };
const HEADER = /\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]/y;
const KEY = /([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)[ \t]*/y;
const NOTHING = /[ \t\n]+|[#;][^\n]*/y;

/** Keys have section and name in lower case. Undefined where git would refuse the file. */
export function parseGitConfig(given: string): Setting[] | undefined {
  const text = given.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
  const settings: Setting[] = [];
  let section: string | undefined;
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < text.length) {
    if (take(NOTHING) !== null) continue;
    const header = take(HEADER);
    if (header !== null) {
      const [, name = "", sub] = header;
      section = name.toLowerCase() + (sub === undefined ? "" : `.${sub.replaceAll(/\\(.)/g, "$1")}`);
      continue;
    }
    const key = section === undefined ? null : take(KEY);
    if (key === null) return undefined;
    const value = key[2] === "" ? { text: undefined, end: at } : readValue(text, at);
    if (value === undefined || (key[2] === "" && !/[\n#;]|^$/.test(text.slice(at, at + 1)))) return undefined;
    at = value.end;
    settings.push({ key: `${section}.${key[1]?.toLowerCase()}`, value: value.text });
  }
  return settings;
}

/** Up to the end of the line, or of the last one that goes on. */
function readValue(text: string, start: number): { text: string; end: number } | undefined {
  let value = "";
  let solid = 0; // how much of it is there to stay: spaces at the end are not
  let quoted = false;
  let at = start;
  for (; at < text.length; at += 1) {
    const character = text[at] ?? "";
    if (character === "\n") break;
    if (!quoted && (character === "#" || character === ";")) break;
    if (character === '"') quoted = !quoted;
    else if (character === "\\") {
      const escaped = ESCAPES[text[(at += 1)] ?? ""];
      if (escaped === undefined) return undefined;
      value += escaped;
    } else value += character;
    if (quoted || (character !== " " && character !== "\t")) solid = value.length;
  }
  return quoted ? undefined : { text: value.slice(0, solid), end: at };
}
