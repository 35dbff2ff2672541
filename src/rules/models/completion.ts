/** A question of the server itself to a model, and what of the answer can be believed: its text, and nothing else. */
import { z } from "zod";
import type { ModelShape } from "../../base/schema/model.ts";
import type { MaximumCost, ModelRequest } from "./request.ts";
import { Refusal } from "./refusal.ts";

export interface ModelQuestion {
  /** What the model is to do. */
  readonly instructions: string;
  /** What it is to do it with. It comes from sandboxes: data, whatever it says. */
  readonly data: string;
  /** The most that the answer may have. A model that thinks first needs some of it for that. */
  readonly outputTokens: number;
}

/** Text has about this many bytes in a token: rather too many tokens than too few. */
const BYTES_PER_TOKEN = 3;

interface Call {
  readonly path: (model: string) => string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (model: string, question: ModelQuestion) => object;
  /** The texts of an answer. */
  readonly texts: (answer: unknown) => readonly string[];
}

const Block = z.object({ type: z.string(), text: z.string().optional() });
const AnthropicAnswer = z.object({ content: z.array(Block) });
const OpenAiAnswer = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1) });
const GeminiPart = z.object({ text: z.string().optional(), thought: z.boolean().optional() });
const GeminiAnswer = z.object({ candidates: z.array(z.object({ content: z.object({ parts: z.array(GeminiPart).optional() }) })).min(1) });

const CALLS: Readonly<Record<ModelShape, Call>> = {
  anthropic: {
    path: () => "/v1/messages",
    headers: { "anthropic-version": "2023-06-01" },
    body: (model, { instructions, data, outputTokens }) => ({
      model,
      max_tokens: outputTokens,
      system: instructions,
      messages: [{ role: "user", content: data }],
    }),
    texts: (answer) =>
      AnthropicAnswer.parse(answer).content.flatMap(({ type, text }) => (type === "text" && text !== undefined ? [text] : [])),
  },
  openai: {
    path: () => "/chat/completions",
    headers: {},
    body: (model, { instructions, data, outputTokens }) => ({
      model,
      max_completion_tokens: outputTokens,
      messages: [
        { role: "system", content: instructions },
        { role: "user", content: data },
      ],
    }),
    texts: (answer) => [OpenAiAnswer.parse(answer).choices[0]?.message.content ?? ""],
  },
  gemini: {
    path: (model) => `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    headers: {},
    body: (_model, { instructions, data, outputTokens }) => ({
      systemInstruction: { parts: [{ text: instructions }] },
      contents: [{ role: "user", parts: [{ text: data }] }],
      generationConfig: { maxOutputTokens: outputTokens },
    }),
    texts: (answer) =>
      (GeminiAnswer.parse(answer).candidates[0]?.content.parts ?? []).flatMap(({ text, thought }) =>
        text === undefined || thought === true ? [] : [text],
      ),
  },
};

export function questionRequest(
  shape: ModelShape,
  model: string,
  question: ModelQuestion,
): ModelRequest & { readonly billed: MaximumCost } {
  const { path, headers, body } = CALLS[shape];
  const sent = Buffer.from(JSON.stringify(body(model, { ...question, data: question.data.toWellFormed() })));
  const inputTokens = Math.ceil(sent.length / BYTES_PER_TOKEN);
  return {
    method: "POST",
    path: path(model),
    headers: { "content-type": "application/json", "accept-encoding": "identity", ...headers },
    body: sent,
    billed: { model, inputTokens, outputTokens: question.outputTokens, factor: 1, streamed: false },
    hideUsage: false,
  };
}

/** Refuses an answer that has no text. */
export function textIn(shape: ModelShape, answer: unknown): string {
  let text = "";
  try {
    text = CALLS[shape].texts(answer).join("").trim();
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
  }
  if (text === "") throw new Refusal("provider_unusable", "The model API gave no text.");
  return text;
}
