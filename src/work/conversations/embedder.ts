/** The port of what turns a text into a vector, so that texts of like meaning have like vectors. */

export interface Embedder {
  /** Names the space: vectors of two embedders can't be compared. */
  readonly name: string;
  /** A text less like another has nothing to do with it. */
  readonly leastSimilarity: number;
  /** One vector for each text, of unit length, each part times 127. A text that says nothing has zeros. */
  embed(texts: readonly string[]): Promise<Int8Array[]>;
}

/** Unit length in 8 bits a part: a quarter of the space, and what is lost is less than what any embedder knows. */
export function quantized(vector: ArrayLike<number>): Int8Array {
  let squares = 0;
  for (let index = 0; index < vector.length; index += 1) squares += (vector[index] ?? 0) ** 2;
  const parts = new Int8Array(vector.length);
  const scale = squares === 0 ? 0 : 127 / Math.sqrt(squares);
  for (let index = 0; index < vector.length; index += 1) parts[index] = Math.round((vector[index] ?? 0) * scale);
  return parts;
}

/** From -1 to 1. */
export function similarity(one: Int8Array, other: Int8Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index += 1) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum / (127 * 127);
}
