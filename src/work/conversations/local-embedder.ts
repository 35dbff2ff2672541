/**
 * An embedder without a model: words, groups of words with about one meaning, and pieces of words are hashed into a vector. It knows
 * far less than a model does, but needs no download, no network and no money, and gives the same vector everywhere.
 */
import { conceptsOf, joined } from "./concepts.ts";
import { quantized, type Embedder } from "./embedder.ts";
import { stemsOf } from "./words.ts";

/** The first parts are for one concept each, so that these never fall together; words and their pieces share the others. */
const CONCEPT_PARTS = 64;
const HASHED_PARTS = 448;
const WEIGHTS = { word: 1, concept: 1.5, piece: 0.2, short: 0.4 };
const PIECE = 3;
/** What a long text is about stands at its beginning or its end. */
const READ = { head: 3_000, tail: 1_000 };

export class LocalEmbedder implements Embedder {
  /** Its number changes with every change of what a text becomes. */
  readonly name = "local-1";
  readonly leastSimilarity = 0.17;

  async embed(texts: readonly string[]): Promise<Int8Array[]> {
    return texts.map((text) => quantized(vectorOf(text)));
  }
}

function vectorOf(text: string): Float32Array {
  const vector = new Float32Array(CONCEPT_PARTS + HASHED_PARTS);
  const words = countsOf(stemsOf(joined(partOf(text))));
  for (const [word, count] of words) {
    const weight = sublinear(count) * (word.length < 3 || /^\d+$/.test(word) ? WEIGHTS.short : 1);
    add(vector, word, weight * WEIGHTS.word);
    const edged = `<${word}>`;
    for (let start = 0; start + PIECE <= edged.length; start += 1) add(vector, edged.slice(start, start + PIECE), weight * WEIGHTS.piece);
  }
  const concepts = new Map<number, number>();
  for (const [word, count] of words) for (const concept of conceptsOf(word)) concepts.set(concept, (concepts.get(concept) ?? 0) + count);
  for (const [concept, count] of concepts) vector[concept % CONCEPT_PARTS] = sublinear(count) * WEIGHTS.concept;
  return vector;
}

function partOf(text: string): string {
  return text.length <= READ.head + READ.tail ? text : `${text.slice(0, READ.head)} ${text.slice(-READ.tail)}`;
}

function countsOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** The tenth time says little more than the first. */
function sublinear(count: number): number {
  return 1 + Math.log(count);
}

/**
 * In two places, so that two words seldom share both. The sign comes from the hash, too: what falls together cancels out as often as
 * it adds up.
 */
function add(vector: Float32Array, feature: string, weight: number): void {
  const hash = hashOf(feature);
  for (const [half, sign] of [
    [hash >>> 16, hash & 1],
    [(hash >>> 2) & 0x3fff, hash & 2],
  ] as const) {
    const at = CONCEPT_PARTS + (half % HASHED_PARTS);
    vector[at] = (vector[at] ?? 0) + (sign === 0 ? -weight : weight) * Math.SQRT1_2;
  }
}

/** FNV-1a, its bits mixed once more. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}
