/** Anthropic's messages. */
import { groups, namesOf, objects, type Json, type Shape, type StreamEvent, type Turn } from "./shape.ts";

const event = (data: Json & { readonly type: string }): StreamEvent => ({ name: data.type, data });

function blocks({ thinking, text, calls }: Turn): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ type: "thinking", thinking, signature: "c2lnbmVk" }]),
    ...(text === undefined ? [] : [{ type: "text", text }]),
    ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
  ];
}

function emptied(block: Json): Json {
  if (block["type"] === "thinking") return { type: "thinking", thinking: "", signature: "" };
  return block["type"] === "text" ? { type: "text", text: "" } : { ...block, input: {} };
}

function deltas(block: Json): Json[] {
  if (block["type"] === "text") return [{ type: "text_delta", text: block["text"] }];
  if (block["type"] === "tool_use") return [{ type: "input_json_delta", partial_json: JSON.stringify(block["input"]) }];
  return [
    { type: "thinking_delta", thinking: block["thinking"] },
    { type: "signature_delta", signature: block["signature"] },
  ];
}

const usageOf = ({ usage }: Turn): Json => ({
  input_tokens: usage.input,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cacheRead,
  output_tokens: usage.output,
});

const envelope = (turn: Turn): Json => ({
  id: `msg_${turn.id}`,
  type: "message",
  role: "assistant",
  model: turn.model,
  stop_sequence: null,
});
const reason = ({ calls }: Turn): string => (calls.length > 0 ? "tool_use" : "end_turn");

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

export const anthropic: Shape = {
  turnsIn: ({ messages }) => groups(objects(messages), ({ role }) => role === "assistant"),
  toolsOf: ({ tools }) => namesOf(objects(tools)),
  whole: (turn) => ({ ...envelope(turn), content: blocks(turn), stop_reason: reason(turn), usage: usageOf(turn) }),
  stream: (turn) => [
    event({
      type: "message_start",
      message: { ...envelope(turn), content: [], stop_reason: null, usage: { ...usageOf(turn), output_tokens: 1 } },
    }),
    ...blocks(turn).flatMap((block, index) => [
      event({ type: "content_block_start", index, content_block: emptied(block) }),
      ...deltas(block).map((delta) => event({ type: "content_block_delta", index, delta })),
      event({ type: "content_block_stop", index }),
    ]),
    event({
      type: "message_delta",
      delta: { stop_reason: reason(turn), stop_sequence: null },
      usage: { output_tokens: turn.usage.output },
    }),
    event({ type: "message_stop" }),
  ],
  error: (status, message) => ({ type: "error", error: { type: ERROR_TYPES[status] ?? "api_error", message } }),
};
