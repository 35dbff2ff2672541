/** Gemini's generateContent. */
import { groups, namesOf, objects, type Json, type Shape, type Turn } from "./shape.ts";

function parts({ thinking, text, calls }: Turn): Json[] {
  return [
    ...(thinking === undefined ? [] : [{ text: thinking, thought: true }]),
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } })),
  ];
}

const answer = (turn: Turn, said: readonly Json[], end: Json): Json => ({
  candidates: [{ content: { role: "model", parts: said }, index: 0, ...end }],
  modelVersion: turn.model,
  responseId: turn.id,
});

const ended = ({ usage }: Turn): Json => ({
  usageMetadata: {
    promptTokenCount: usage.input + usage.cacheRead,
    candidatesTokenCount: usage.output - usage.thinking,
    thoughtsTokenCount: usage.thinking,
    cachedContentTokenCount: usage.cacheRead,
    totalTokenCount: usage.input + usage.cacheRead + usage.output,
  },
});

const STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};

export const gemini: Shape = {
  turnsIn: ({ contents }) => groups(objects(contents), ({ role }) => role === "model"),
  toolsOf: ({ tools }) => namesOf(objects(tools).flatMap(({ functionDeclarations }) => objects(functionDeclarations))),
  whole: (turn) => ({ ...answer(turn, parts(turn), { finishReason: "STOP" }), ...ended(turn) }),
  stream: (turn) => [
    ...parts(turn).map((part) => ({ data: answer(turn, [part], {}) })),
    { data: { ...answer(turn, [], { finishReason: "STOP" }), ...ended(turn) } },
  ],
  error: (status, message) => ({ error: { code: status, message, status: STATUSES[status] ?? "UNKNOWN" } }),
};
