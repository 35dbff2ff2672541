/** Conversations for people to read. */
import type { ContextEntry, ConversationHit } from "../../base/schema/conversation.ts";
import type { Screen } from "./screen.ts";
import { ago, clean } from "./text.ts";

/** The text keeps its lines, and nothing else that moves a cursor. */
const cleanLines = (text: string): string[] => text.split("\n").map((line) => clean(line.replaceAll("\t", "    ")));

export function printEntry(screen: Screen, entry: ContextEntry): void {
  const place = entry.from === entry.to ? `${entry.from}` : `${entry.from}-${entry.to}`;
  const remarks = [entry.form === "shortened" ? "shortened" : "", entry.pinned ? "pinned" : ""].filter((remark) => remark !== "");
  const rest = remarks.length === 0 ? "" : ` (${remarks.join(", ")})`;
  screen.print(`${screen.paint("bold", `${place} ${titleOf(entry)}`)}${screen.paint("dim", rest)}`);
  for (const line of cleanLines(entry.text)) screen.print(`  ${line}`);
}

export function printHits(screen: Screen, hits: readonly ConversationHit[]): void {
  screen.table(hits, [
    { title: "RECORD", value: ({ sequence }) => String(sequence) },
    { title: "AT", value: ({ at }) => ago(at) },
    { title: "WHO", value: (hit) => titleOf(hit) },
    { title: "BY", value: ({ by }) => by.join("+") },
    { title: "TEXT", value: ({ excerpt }) => clean(excerpt.replace(/\s+/g, " ")), shrinks: true },
  ]);
}

function titleOf({ role, kind, tool }: Pick<ContextEntry, "role" | "kind" | "tool">): string {
  const name = tool === null ? "" : ` ${clean(tool)}`;
  return kind === "text" ? role : `${role} ${kind}${name}`;
}
