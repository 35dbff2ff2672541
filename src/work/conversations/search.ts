/** Search by words and by meaning, as one list. */
import { setTimeout as delay } from "node:timers/promises";
import type { ConversationHit } from "../../base/schema/conversation.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ConversationSearch, FoundRecord, SearchScope } from "../../base/store/conversation-log.ts";
import type { Meaning } from "./meaning.ts";
import { stem, tellingWordsOf, wordsOf } from "./words.ts";

/** How many of each list count, and how much the first of a list counts more than the next. */
const CANDIDATES = 100;
const RANK_OFFSET = 60;
const MOST_WORDS = 32;
const EXCERPT_CHARACTERS = 240;

export async function searchRecords(
  records: ConversationSearch,
  meaning: Meaning,
  query: string,
  scope: SearchScope,
  limit: number,
): Promise<ConversationHit[]> {
  const words = searchedWords(query);
  if (words.length === 0) return [];
  await Promise.race([meaning.catchUp().catch(() => undefined), delay(LIMITS.meaningWaitMs, undefined, { ref: false })]);
  const lists = {
    words: await records.words(words, scope, CANDIDATES),
    meaning: await meaning.find(query, scope, CANDIDATES),
  };
  const hits: ConversationHit[] = [];
  for (const id of fused(Object.values(lists)).slice(0, limit)) {
    const found = await records.get(id);
    if (found === undefined) continue;
    const by = (["words", "meaning"] as const).filter((way) => lists[way].includes(id));
    hits.push(hitOf(found, by, words));
  }
  return hits;
}

/** Names with humps count as they are and by their parts. */
function searchedWords(query: string): string[] {
  const telling = [...tellingWordsOf(query.toLowerCase()), ...tellingWordsOf(query)];
  return [...new Set(telling.length > 0 ? telling : wordsOf(query))].slice(0, MOST_WORDS);
}

/** Reciprocal rank fusion: scores of different searches can't be compared, places in their lists can. */
function fused(lists: readonly (readonly number[])[]): number[] {
  const scores = new Map<number, number>();
  for (const list of lists) for (const [rank, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (RANK_OFFSET + rank));
  return [...scores].toSorted(([oneId, one], [otherId, other]) => other - one || otherId - oneId).map(([id]) => id);
}

function hitOf({ run, project, record }: FoundRecord, by: ConversationHit["by"], words: readonly string[]): ConversationHit {
  const { sequence, at, role, kind, tool, callId } = record;
  return { run, project, sequence, at, role, kind, tool, callId, excerpt: excerptOf(record.text, words), by };
}

/** The part that has most of the words, by their beginnings. */
function excerptOf(text: string, words: readonly string[]): string {
  if (text.length <= EXCERPT_CHARACTERS) return text;
  const lower = text.toLowerCase();
  const stems = [...new Set(words.map(stem))];
  let best = { start: 0, count: 0 };
  for (const one of stems) {
    const start = Math.max(0, lower.indexOf(one) - EXCERPT_CHARACTERS / 3);
    const part = lower.slice(start, start + EXCERPT_CHARACTERS);
    const count = stems.filter((other) => part.includes(other)).length;
    if (count > best.count) best = { start, count };
  }
  const end = best.start + EXCERPT_CHARACTERS;
  return `${best.start > 0 ? "…" : ""}${text.slice(best.start, end)}${end < text.length ? "…" : ""}`.toWellFormed();
}
