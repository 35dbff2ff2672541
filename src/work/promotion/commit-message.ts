/** What a commit says: the given message, what changed, which checks ran, and who helped. */
import type { GitStore } from "../../machine/merge/store.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { SEEN_SEQUENCE, UNSEEN } from "../../base/schema/unseen.ts";

export interface CheckLine {
  readonly name: string;
  readonly passed: boolean;
}

export interface MessageParts {
  readonly message: string;
  readonly stat: readonly string[];
  readonly checks: readonly CheckLine[];
  /** As in a trailer: `Name <address>`. */
  readonly coAuthor: string | undefined;
}

const MOST_LISTED = 50;
const MOST_SUBJECT_CHARACTERS = 120;
const MOST_MESSAGE_CHARACTERS = 32_768;
const HIDDEN = new RegExp(String.raw`(${SEEN_SEQUENCE})|[${UNSEEN}]|\p{Cs}`, "gv");

export function commitMessage({ message, stat, checks, coAuthor }: MessageParts): string {
  const [subject = "", ...rest] = cleanText(message).split("\n");
  const ran = checks.map(({ name, passed }) => `- ${oneLine(name)}: ${passed ? "passed" : "failed"}`);
  const paragraphs = [
    oneLine(subject) || "Change",
    rest.join("\n").trim(),
    stat.length > 0 ? `Changed:\n${stat.join("\n")}` : "",
    ran.length > 0 ? `Checks:\n${ran.join("\n")}` : "",
    coAuthor === undefined ? "" : `Co-authored-by: ${oneLine(coAuthor)}`,
  ];
  return `${paragraphs.filter((paragraph) => paragraph !== "").join("\n\n")}\n`;
}

/** Text of any origin, as text that shows what it is. */
export function cleanText(text: string): string {
  const lines = text.slice(0, MOST_MESSAGE_CHARACTERS).replaceAll("\r\n", "\n").replaceAll("\t", "    ").trim().split("\n");
  return lines.map((line) => line.replace(HIDDEN, (_, seen?: string) => seen ?? "").trimEnd()).join("\n");
}

export function oneLine(text: string, most = MOST_SUBJECT_CHARACTERS): string {
  const line = text
    .replace(/\s+/g, " ")
    .replace(HIDDEN, (_, seen?: string) => seen ?? "")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** One line for each path that differs, and how. */
export async function statLines(store: GitStore, from: string, to: string): Promise<string[]> {
  const { stdout } = await store.git(["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-textconv", from, to]);
  const parts = stdout.toString("latin1").split("\0").slice(0, -1);
  const words = { A: "added", D: "deleted" } as const;
  const lines: string[] = [];
  for (let at = 0; parts[at]?.startsWith(":") === true; at += 2) {
    const letter = parts[at]?.split(" ")[4] ?? "";
    lines.push(words[letter as keyof typeof words] ?? "");
  }
  const counts = parts.slice(lines.length * 2);
  const listed = counts.map((row, index) => {
    const [added = "-", removed = "-", ...path] = row.split("\t");
    const name = oneLine(decodePath(Buffer.from(path.join("\t"), "latin1")).toWellFormed(), 200);
    const what = [lines[index] ?? "", added === "-" ? "binary" : `+${added} -${removed}`].filter((word) => word !== "");
    return `- ${name} (${what.join(", ")})`;
  });
  return listed.length > MOST_LISTED ? [...listed.slice(0, MOST_LISTED), `- and ${listed.length - MOST_LISTED} more`] : listed;
}
