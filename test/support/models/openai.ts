/** OpenAI's two ways: chat completions, and responses. */
import { groups, namesOf, objects, type Json, type Shape, type StreamEvent, type Turn } from "./shape.ts";

const ERROR_CODES: Readonly<Record<number, string>> = { 401: "invalid_api_key", 402: "insufficient_quota", 429: "rate_limit_exceeded" };

const error = (status: number, message: string): Json => ({
  error: { message, type: status < 500 ? "invalid_request_error" : "server_error", param: null, code: ERROR_CODES[status] ?? null },
});

const chatUsage = ({ usage }: Turn): Json => ({
  prompt_tokens: usage.input + usage.cacheRead,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.cacheRead + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cacheRead },
});

const chatCalls = ({ calls }: Turn): Json[] =>
  calls.map(({ id, name, input }) => ({ id, type: "function", function: { name, arguments: JSON.stringify(input) } }));

const finish = ({ calls }: Turn): string => (calls.length > 0 ? "tool_calls" : "stop");

function chatDeltas(turn: Turn): Json[] {
  return [
    { role: "assistant", content: "" },
    ...(turn.thinking === undefined ? [] : [{ reasoning_content: turn.thinking }]),
    ...(turn.text === undefined ? [] : [{ content: turn.text }]),
    ...(turn.calls.length === 0 ? [] : [{ tool_calls: chatCalls(turn).map((call, index) => ({ index, ...call })) }]),
  ];
}

export const chat: Shape = {
  turnsIn: ({ messages }) => groups(objects(messages), ({ role }) => role === "assistant"),
  toolsOf: ({ tools }) => namesOf(objects(objects(tools).map((tool) => tool["function"]))),
  whole: (turn) => ({
    id: `chatcmpl-${turn.id}`,
    object: "chat.completion",
    model: turn.model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: turn.text ?? null, ...(turn.calls.length > 0 ? { tool_calls: chatCalls(turn) } : {}) },
        finish_reason: finish(turn),
      },
    ],
    usage: chatUsage(turn),
  }),
  stream(turn, body): StreamEvent[] {
    const chunk = { id: `chatcmpl-${turn.id}`, object: "chat.completion.chunk", created: 1, model: turn.model };
    const wanted = (body["stream_options"] as { include_usage?: boolean } | undefined)?.include_usage === true;
    return [
      ...chatDeltas(turn).map((delta) => ({ data: { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] } })),
      { data: { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: finish(turn) }] } },
      ...(wanted ? [{ data: { ...chunk, choices: [], usage: chatUsage(turn) } }] : []),
      { data: "[DONE]" },
    ];
  },
  error,
};

function items({ id, thinking, text, calls }: Turn): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ type: "reasoning", id: `rs_${id}`, summary: [{ type: "summary_text", text: thinking }] }]),
    ...(text === undefined
      ? []
      : [
          {
            type: "message",
            id: `msg_${id}`,
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ]),
    ...calls.map(({ id: call, name, namespace, input }) => ({
      type: "function_call",
      id: `fc_${call}`,
      call_id: call,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      arguments: JSON.stringify(input),
      status: "completed",
    })),
  ];
}

function itemEvents(item: Json, index: number): Json[] {
  const at = { item_id: item["id"], output_index: index };
  const text = item["type"] === "message" ? (objects(item["content"])[0]?.["text"] ?? "") : undefined;
  return [
    { type: "response.output_item.added", output_index: index, item: { ...item, ...(text === undefined ? {} : { content: [] }) } },
    ...(text === undefined ? [] : [{ type: "response.output_text.delta", ...at, content_index: 0, delta: text }]),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

const response = (turn: Turn): Json => ({
  id: `resp_${turn.id}`,
  object: "response",
  created_at: 1,
  model: turn.model,
  status: "completed",
  output: items(turn),
  usage: {
    input_tokens: turn.usage.input + turn.usage.cacheRead,
    input_tokens_details: { cached_tokens: turn.usage.cacheRead },
    output_tokens: turn.usage.output,
    output_tokens_details: { reasoning_tokens: turn.usage.thinking },
    total_tokens: turn.usage.input + turn.usage.cacheRead + turn.usage.output,
  },
});

const OF_THE_MODEL = new Set(["function_call", "custom_tool_call", "local_shell_call", "reasoning"]);

export const responses: Shape = {
  turnsIn: ({ input }) =>
    groups(objects(input), ({ type, role }) => role === "assistant" || (typeof type === "string" && OF_THE_MODEL.has(type))),
  toolsOf: ({ tools }) =>
    objects(tools).flatMap(({ type, name, tools: within }) =>
      type === "namespace" ? namesOf(objects(within)).map((each) => `${String(name)}.${each}`) : [String(name ?? type)],
    ),
  whole: response,
  stream: (turn) =>
    [
      { type: "response.created", response: { ...response(turn), status: "in_progress", output: [], usage: null } },
      ...items(turn).flatMap(itemEvents),
      { type: "response.completed", response: response(turn) },
    ].map((data, index) => ({ name: String(data["type"]), data: { ...data, sequence_number: index } })),
  error,
};
