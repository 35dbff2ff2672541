/** Streams of model APIs as they come over the wire, written after the providers' documents. */

const lines = (...events: readonly (readonly [type: string | null, data: object | string])[]): string =>
  events
    .map(([type, data]) => `${type === null ? "" : `event: ${type}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`)
    .join("");

const message = {
  id: "msg_01XFDUDYJgAACzvnptvVoYEL",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-5-20250929",
  content: [],
  stop_reason: null,
  stop_sequence: null,
};

export const ANTHROPIC_STREAM = lines(
  [
    "message_start",
    {
      type: "message_start",
      message: {
        ...message,
        usage: {
          input_tokens: 472,
          cache_creation_input_tokens: 1200,
          cache_read_input_tokens: 30000,
          cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 200 },
          output_tokens: 2,
          service_tier: "standard",
        },
      },
    },
  ],
  ["content_block_start", { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } }],
  ["ping", { type: "ping" }],
  ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Let me look…" } }],
  ["content_block_delta", { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "EqQBCgIYAhIM1gbcDa9" } }],
  ["content_block_stop", { type: "content_block_stop", index: 0 }],
  ["content_block_start", { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } }],
  ["content_block_delta", { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Grüße 👋" } }],
  ["content_block_stop", { type: "content_block_stop", index: 1 }],
  ["message_delta", { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 89 } }],
  ["message_stop", { type: "message_stop" }],
);

/** The API gives up in the middle. */
export const ANTHROPIC_OVERLOADED = lines(
  ["message_start", { type: "message_start", message: { ...message, usage: { input_tokens: 472, output_tokens: 2 } } }],
  ["content_block_start", { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }],
  ["error", { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
);

const chunk = {
  id: "chatcmpl-9aBcDeF",
  object: "chat.completion.chunk",
  created: 1_731_000_000,
  model: "gpt-5-mini-2025-08-07",
  service_tier: "default",
  system_fingerprint: "fp_44709d6fcb",
};

export const CHAT_STREAM = lines(
  [
    null,
    {
      ...chunk,
      choices: [{ index: 0, delta: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: null }],
      usage: null,
    },
  ],
  [null, { ...chunk, choices: [{ index: 0, delta: { content: "Hello" }, logprobs: null, finish_reason: null }], usage: null }],
  [null, { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }], usage: null }],
  [
    null,
    {
      ...chunk,
      choices: [],
      usage: {
        prompt_tokens: 1117,
        completion_tokens: 446,
        total_tokens: 1563,
        prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 400, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
      },
    },
  ],
  [null, "[DONE]"],
);

const response = { id: "resp_67c9fdcecf488190", object: "response", created_at: 1_741_290_958, model: "gpt-5-2025-08-07", output: [] };
const usage = {
  input_tokens: 328,
  input_tokens_details: { cached_tokens: 128 },
  output_tokens: 52,
  output_tokens_details: { reasoning_tokens: 32 },
  total_tokens: 380,
};

const responses = (end: "completed" | "incomplete" | "failed"): string =>
  lines(
    ["response.created", { type: "response.created", sequence_number: 0, response: { ...response, status: "in_progress", usage: null } }],
    [
      "response.in_progress",
      { type: "response.in_progress", sequence_number: 1, response: { ...response, status: "in_progress", usage: null } },
    ],
    [
      "response.output_item.added",
      { type: "response.output_item.added", sequence_number: 2, output_index: 0, item: { id: "msg_1", type: "message" } },
    ],
    [
      "response.output_text.delta",
      { type: "response.output_text.delta", sequence_number: 3, item_id: "msg_1", output_index: 0, content_index: 0, delta: "Hi" },
    ],
    [`response.${end}`, { type: `response.${end}`, sequence_number: 4, response: { ...response, status: end, usage } }],
  );

export const RESPONSES_STREAM = responses("completed");
export const RESPONSES_INCOMPLETE = responses("incomplete");
