/** What a piece of code is written in: as its option says, else its file's ending, else its first line. */
import { extname } from "node:path";
import type { JobKind } from "../../base/schema/job.ts";
import { usageError } from "./values.ts";

const NAMES: Readonly<Record<string, JobKind>> = {
  python: "python",
  py: "python",
  ts: "typescript",
  typescript: "typescript",
  js: "typescript",
  sh: "shell",
  shell: "shell",
  bash: "shell",
};
/** What help and completion offer. */
export const LANGUAGE_NAMES = ["python", "ts", "sh"] as const;

const ENDINGS: Readonly<Record<string, JobKind>> = {
  ".py": "python",
  ".ts": "typescript",
  ".mts": "typescript",
  ".js": "typescript",
  ".mjs": "typescript",
  ".sh": "shell",
  ".bash": "shell",
};

const SHEBANGS: readonly (readonly [RegExp, JobKind])[] = [
  [/\bpython[\d.]*\b/, "python"],
  [/\b(?:node|tsx|ts-node|deno|bun)\b/, "typescript"],
  [/\b(?:ba|da|z|k)?sh\b/, "shell"],
];

export function languageOf(option: string | undefined, file: string | undefined, code: string): JobKind {
  if (option !== undefined) {
    const named = Object.hasOwn(NAMES, option) ? NAMES[option] : undefined;
    if (named === undefined) throw usageError(`--lang takes ${LANGUAGE_NAMES.join(", ")}, not ${JSON.stringify(option)}.`);
    return named;
  }
  const ending = extname(file ?? "").toLowerCase();
  const first = /^#!.*/.exec(code)?.[0] ?? "";
  const found = (Object.hasOwn(ENDINGS, ending) ? ENDINGS[ending] : undefined) ?? SHEBANGS.find(([pattern]) => pattern.test(first))?.[1];
  if (found !== undefined) return found;
  throw usageError(
    "Neither the file's ending nor its first line says what the code is written in.",
    `Say it with \`--lang ${LANGUAGE_NAMES.join("|")}\`.`,
  );
}
