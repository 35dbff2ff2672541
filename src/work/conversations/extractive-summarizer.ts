/** Chooses the sentences that say most, and gives them in their order: nothing is made up, and no model is asked. */
import type { ConversationKind, ConversationRecord, ConversationRole } from "../../base/schema/conversation.ts";
import { errorWeight } from "./shortening.ts";
import type { Summarizer } from "./summarizer.ts";
import { estimateTokens, headOf } from "./tokens.ts";
import { stemsOf } from "./words.ts";

interface Sentence {
  readonly text: string;
  readonly stems: ReadonlySet<string>;
  /** How much it counts by where it stands and by whom it is. */
  readonly weight: number;
}

const SENTENCE_END = /(?<=[.!?])\s+|\n+/;
const SENTENCE_TOKENS = 60;
const LEAST_CHARACTERS = 8;
const BY_ROLE: Readonly<Record<ConversationRole, number>> = { task: 3, person: 2.2, guardian: 1.5, system: 1.2, agent: 1.1, tool: 0.7 };
const BY_KIND: Readonly<Record<ConversationKind, number>> = { decision: 3, summary: 2, text: 1, "tool-call": 0.9, "tool-result": 0.8 };
const FIRST = 1.35;
const LAST = 1.15;
/** Two sentences that share more of their words say the same. */
const SAME = 0.6;

export class ExtractiveSummarizer implements Summarizer {
  async summarize(records: readonly ConversationRecord[], tokens: number): Promise<string> {
    const sentences = records.flatMap(sentencesOf);
    const scores = scoresOf(sentences);
    const ranked = sentences.map((_, index) => index).toSorted((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
    const chosen: number[] = [];
    let left = tokens;
    for (const index of ranked) {
      const sentence = sentences[index];
      if (sentence === undefined || left < LEAST_CHARACTERS) break;
      const cost = estimateTokens(sentence.text) + 1;
      if (cost > left || chosen.some((other) => saysTheSame(sentence, sentences[other]))) continue;
      chosen.push(index);
      left -= cost;
    }
    return chosen
      .toSorted((a, b) => a - b)
      .map((index) => sentences[index]?.text ?? "")
      .join("\n");
  }
}

function sentencesOf(record: ConversationRecord): Sentence[] {
  const parts = record.text.split(SENTENCE_END).filter((part) => part.length >= LEAST_CHARACTERS);
  const speaker = speakerOf(record);
  const base = BY_ROLE[record.role] * BY_KIND[record.kind];
  return parts.map((part, index) => {
    const place = index === 0 ? FIRST : index === parts.length - 1 ? LAST : 1;
    const weight = base * place * errorWeight(part);
    return { text: `${speaker}: ${headOf(part.trim(), SENTENCE_TOKENS)}`, stems: new Set(stemsOf(part.slice(0, 400))), weight };
  });
}

function speakerOf({ role, kind, tool }: ConversationRecord): string {
  if (kind === "tool-call") return `called ${tool ?? "a tool"}`;
  if (kind === "tool-result") return `${tool ?? "a tool"} gave`;
  return role;
}

/** Words that few sentences have say more than those that all have; a long sentence must not win by its length. */
function scoresOf(sentences: readonly Sentence[]): number[] {
  const having = new Map<string, number>();
  for (const { stems } of sentences) for (const stem of stems) having.set(stem, (having.get(stem) ?? 0) + 1);
  return sentences.map(({ stems, weight }) => {
    let sum = 0;
    for (const stem of stems) {
      const count = having.get(stem) ?? 1;
      // A word that stands here alone may be noise; one that comes back is what it is about.
      sum += Math.log(1 + sentences.length / count) * (count === 1 ? 0.6 : 1);
    }
    return stems.size === 0 ? 0 : (weight * sum) / Math.sqrt(stems.size + 3);
  });
}

function saysTheSame(one: Sentence, other: Sentence | undefined): boolean {
  if (other === undefined) return false;
  let shared = 0;
  for (const stem of one.stems) if (other.stems.has(stem)) shared += 1;
  return shared > SAME * Math.min(one.stems.size, other.stems.size);
}
