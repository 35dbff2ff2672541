/** Does a sed script run commands or write files? What is not plain substitution, deletion or printing counts as yes. */
import { isUnknown, type Word } from "../shell/script.ts";

const PLAIN = new Set(["d", "D", "g", "G", "h", "H", "n", "N", "p", "P", "x", "=", "z", "q", "Q", "l", "{", "}", ";", " ", "\t", "\n"]);

export function sedRuns(words: readonly Word[]): boolean {
  const scripts: Word[] = [];
  let operand: Word | undefined;
  for (let index = 1; index < words.length; index += 1) {
    const word = words[index];
    if (word === undefined) break;
    const { text } = word;
    if (/^(-[nrsuzE]*l|--l[a-z-]*)$/.test(text)) index += 1;
    else if (text === "-e" || text === "--expression") {
      index += 1;
      const next = words[index];
      if (next !== undefined) scripts.push(next);
    } else if (/^(-[nrsuzE]*f|--fi)/.test(text)) return true;
    else if (text.startsWith("--e")) scripts.push({ ...word, text: text.slice(text.indexOf("=") + 1) });
    else if (/^-[nrsuzE]*e./.test(text)) scripts.push({ ...word, text: text.slice(text.indexOf("e") + 1) });
    else if (!text.startsWith("-")) operand ??= word;
    else if (isUnknown(word)) return true;
  }
  if (scripts.length === 0 && operand !== undefined) scripts.push(operand);
  return scripts.some((script) => isUnknown(script) || !isPlain(script.text));
}

function isPlain(script: string): boolean {
  let at = 0;
  while (at < script.length) {
    const character = script[at] ?? "";
    if (PLAIN.has(character) || /[0-9,$!~+]/.test(character)) at += 1;
    else if (character === "/") at = afterDelimiter(script, at + 1, "/");
    else if (character === "s" || character === "y") at = afterSubstitution(script, at + 1);
    else if (character === "a" || character === "i" || character === "c") return !script.slice(at).includes("\n");
    else return false;
    if (at < 0) return false;
  }
  return true;
}

/** After the closing delimiter; -1 if there is none. */
function afterDelimiter(script: string, from: number, delimiter: string): number {
  for (let index = from; index < script.length; index += 1) {
    if (script[index] === "\\") index += 1;
    else if (script[index] === delimiter) return index + 1;
  }
  return -1;
}

function afterSubstitution(script: string, from: number): number {
  const delimiter = script[from] ?? "";
  if (delimiter === "" || delimiter === "\\" || delimiter === "\n") return -1;
  const middle = afterDelimiter(script, from + 1, delimiter);
  let at = middle < 0 ? -1 : afterDelimiter(script, middle, delimiter);
  while (at >= 0 && /[gpiIm0-9]/.test(script[at] ?? "")) at += 1;
  // After the flags a command must end: `e` and `w` are none of them.
  return at < 0 || at === script.length || /[;}\n\s]/.test(script[at] ?? "") ? at : -1;
}
