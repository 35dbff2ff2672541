/** Other ways to write a shell command, and bytes gone wrong. */
import type { Randomness } from "./randomness.ts";

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const inBackticks = (text: string): string => `\`${text.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;

/** Whatever the command is, a shell still runs it. Lines of their own, so that heredocs end where they did. */
export const AROUND: readonly ((text: string) => string)[] = [
  (text) => `npm test\n${text}`,
  (text) => `npm test && {\n${text}\n}`,
  (text) => `npm test || {\n${text}\n}`,
  (text) => `(\n${text}\n)`,
  (text) => `{\n${text}\n}`,
  (text) => `{\n${text}\n} | npm test`,
  (text) => `npm test | {\n${text}\n}`,
  (text) => `{\n${text}\n} &`,
  (text) => `npm test $(\n${text}\n)`,
  (text) => `npm test "$(\n${text}\n)"`,
  (text) => `npm test "it's $\\\n(\n${text}\n)"`,
  (text) => `npm test $\\\n(\n${text}\n)`,
  (text) => `npm test "$\\\n{x\\\n:-$\\\n(\n${text}\n)}"`,
  (text) => `# no join \\\n${text}`,
  (text) => `npm test ${inBackticks(text)}`,
  (text) => `npm test "\${x:-$(\n${text}\n)}"`,
  (text) => `npm test <(\n${text}\n)`,
  (text) => `npm test $((1 + $(\n${text}\n)))`,
  (text) => `if npm test; then\n${text}\nfi`,
  (text) => `if\n${text}\nthen npm test; fi`,
  (text) => `while npm test; do\n${text}\ndone`,
  (text) => `for x in 1 2; do\n${text}\ndone`,
  (text) => `case x in (x)\n${text}\n;; esac`,
  (text) => `f() {\n${text}\n}\nf`,
  (text) => `! {\n${text}\n}`,
  (text) => `npm test <<E\n$(\n${text}\n)\nE`,
  (text) => `sh -c ${quoted(text)}`,
  (text) => `bash -lc ${quoted(text)}`,
  (text) => `eval ${quoted(text)}`,
  (text) => `timeout 5 sh -c ${quoted(text)}`,
  (text) => `env A=1 nice -n 5 sh -c ${quoted(text)}`,
  (text) => `x=$(\n${text}\n)`,
  (text) => `[[ a == $(\n${text}\n) ]]`,
  (text) => `npm test > "$(\n${text}\n)"`,
  (text) => `# a comment\n${text}`,
  (text) => `npm test \\\n; ${text}`,
  (text) => ` \t${text}`,
];

/** Commands of plain words. */
export const PLAIN = /^[a-z]+ [\w /.-]+$/;

/** Quotes and blanks that change nothing, for such commands. */
export const WITHIN: readonly ((text: string, random: Randomness) => string)[] = [
  (text) => text.replaceAll(" ", " \t "),
  (text) => text.replaceAll(" ", " \\\n "),
  (text) =>
    text
      .split(" ")
      .map((word) => `"${word}"`)
      .join(" "),
  (text) =>
    text
      .split(" ")
      .map((word) => `'${word}'`)
      .join(" "),
  (text) => text.replaceAll(/[a-z]/g, "\\$&"),
  (text, random) => {
    const at = 1 + random.below(text.length - 1);
    return `${text.slice(0, at)}''${text.slice(at)}`;
  },
  (text) => text.replace(/^[a-z]/, "'$&'"),
  (text) =>
    text.replace(
      /^[a-z]+/,
      (word) =>
        `$'${word
          .split("")
          .map((one) => `\\x${one.charCodeAt(0).toString(16)}`)
          .join("")}'`,
    ),
  (text) => text.replace(/^[a-z]+/, (word) => word.split("").join("\\\n")),
  (text) => `command ${text}`,
  (text) => `A=1 ${text}`,
  (text) => `A\\\n=1 ${text}`,
  (text) => `A+\\\n=1 ${text}`,
  (text) => `A\\\nB=\\\n1 ${text}`,
  (text) => `A\\\n[\\\n0]\\\n=1 ${text}`,
  (text) => `2\\\n>\\\n&1 ${text}`,
  (text, random) => {
    const at = random.below(text.length + 1);
    return `${text.slice(0, at)}\\\n${text.slice(at)}`;
  },
  (text) => `nohup ${text}`,
];

/** Cut, doubled, mixed with others or with a stray byte, in up to six places. */
export function edited(command: string, random: Randomness, another: () => string): string {
  let text = command;
  for (let edits = 1 + random.below(6); edits > 0; edits -= 1) {
    const at = random.below(text.length + 1);
    const kind = random.below(6);
    if (kind === 0) text = text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at);
    else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + random.below(4));
    else if (kind === 2) text = text.slice(0, at);
    else if (kind === 3) text = text + text.slice(at);
    else if (kind === 4) text = `${text.slice(0, at)}\\\n${text.slice(at)}`;
    else text = text.slice(0, at) + another() + text.slice(at);
  }
  return text;
}
