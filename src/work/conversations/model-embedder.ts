/** An embedder behind a model API of the user's config: it knows meanings that no list holds, and costs money. */
import { LIMITS } from "../../base/schema/limits.ts";
import type { MemoryConfig } from "../../base/schema/conversation.ts";
import type { Models } from "../../rules/models/models.ts";
import { quantized, type Embedder } from "./embedder.ts";

/** Less than every such model takes, also where each character is a token. */
const READ = { head: 4_000, tail: 2_000 };

export class ModelEmbedder implements Embedder {
  readonly #models: Pick<Models, "embeddings">;
  readonly #chosen: NonNullable<MemoryConfig["embeddings"]>;
  readonly name: string;
  /** What is near differs from model to model: the nearest come first, however near they are. */
  readonly leastSimilarity = 0;

  constructor(models: Pick<Models, "embeddings">, chosen: NonNullable<MemoryConfig["embeddings"]>) {
    this.#models = models;
    this.#chosen = chosen;
    this.name = `${chosen.provider}/${chosen.model}`;
  }

  async embed(texts: readonly string[]): Promise<Int8Array[]> {
    const { provider, model } = this.#chosen;
    const signal = AbortSignal.timeout(LIMITS.embeddingMs);
    const vectors = await this.#models.embeddings(provider, model, texts.map(partOf), signal);
    return vectors.map(quantized);
  }
}

function partOf(text: string): string {
  return text.length <= READ.head + READ.tail ? text : `${text.slice(0, READ.head)} ${text.slice(-READ.tail)}`;
}
