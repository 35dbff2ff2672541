/** Whether a model API has a model: only a clear no counts. */
import { describe, expect, test } from "vitest";
import { missing, wordsIn, type Ask } from "../../src/rules/models/offered.ts";
import { Adapters } from "../../src/work/agents/adapters.ts";

type Answers = Readonly<Record<string, readonly [status: number, body: unknown] | undefined>>;

const HAS = { data: [{ id: "claude-opus-5" }, { id: "claude-haiku-4-5" }, { id: "other" }, { id: "a name\u001b[2J" }] };
const NO = { error: { type: "not_found_error", message: "model:\u001b nonsense" } };

function asked(answers: Answers): { ask: Ask; paths: string[] } {
  const paths: string[] = [];
  const ask: Ask = async ({ path }) => {
    paths.push(path);
    const [status, body] = answers[path] ?? [];
    return status === undefined ? undefined : { status, text: typeof body === "string" ? body : JSON.stringify(body) };
  };
  return { ask, paths };
}

describe("a model API", () => {
  test("that has the model is asked once", async () => {
    const { ask, paths } = asked({ "/v1/models/claude-opus-5": [200, { id: "claude-opus-5" }] });
    expect(await missing("anthropic", "claude-opus-5", ask)).toBeUndefined();
    expect(paths).toEqual(["/v1/models/claude-opus-5"]);
  });

  test.each([
    ["anthropic", "/v1/models/claude-opis", "/v1/models?limit=1000", HAS],
    ["openai", "/models/claude-opis", "/models", HAS],
    [
      "gemini",
      "/v1beta/models/claude-opis",
      "/v1beta/models?pageSize=1000",
      { models: [{ name: "models/claude-opus-5" }, { name: "models/claude-haiku-4-5" }, { name: "models/other" }] },
    ],
  ] as const)("of the shape %s that lacks it is told in its words, with the names that are nearest", async (shape, one, all, list) => {
    const { ask } = asked({ [one]: [404, NO], [all]: [200, list] });
    expect(await missing(shape, "claude-opis", ask)).toEqual({
      words: "model: nonsense",
      others: ["claude-opus-5", "claude-haiku-4-5", "other"],
    });
  });

  test.each<[string, Answers]>([
    ["does not answer", {}],
    ["has no such calls", { "/models/x": [404, "page not found"], "/models": [404, "page not found"] }],
    ["has only the list, with the model in it", { "/models/x": [404, NO], "/models": [200, { data: [{ id: "x" }] }] }],
    ["has an empty list", { "/models/x": [404, NO], "/models": [200, { data: [] }] }],
    ["has a list in a form of its own", { "/models/x": [404, NO], "/models": [200, ["y"]] }],
    ["does not let this login ask", { "/models/x": [403, { error: { message: "missing scopes" } }] }],
    ["takes the login for wrong", { "/models/x": [401, { error: { message: "wrong" } }] }],
    ["is broken", { "/models/x": [500, ""], "/models": [200, HAS] }],
  ])("that %s refuses nothing: its first request will say", async (_what, answers) => {
    expect(await missing("openai", "x", asked(answers).ask)).toBeUndefined();
  });

  test("has a name asked for as one part of an address, whatever is in it", async () => {
    const { ask, paths } = asked({});
    await missing("openai", "../keys?all=1#x", ask);
    expect(paths).toEqual(["/models/..%2Fkeys%3Fall%3D1%23x"]);
  });

  test("that says no words in its error has none", () => {
    expect([wordsIn(""), wordsIn("{}"), wordsIn('{"error":{"message":" "}}'), wordsIn('{"error":{"message":"a\\nb"}}')]).toEqual([
      undefined,
      undefined,
      undefined,
      "a b",
    ]);
  });
});

describe("a model's name", () => {
  const adapters = new Adapters({
    line: { protocol: "command", command: "true", env: {} },
    mine: { protocol: "acp", command: ["mine"], env: { MODEL: "{model}" } },
    local: { protocol: "codex", command: ["codex"], env: {}, providers: ["ollama"] },
  });
  test.each([
    ["claude", "claude-opus-5", { provider: "anthropic", model: "claude-opus-5" }],
    ["claude", "claude-opus-5[1m]", { provider: "anthropic", model: "claude-opus-5" }],
    ["claude", "opus", "own"],
    ["claude", "sonnet[1m]", "own"],
    ["claude", "nonsense", { provider: "anthropic", model: "nonsense" }],
    ["codex", "gpt-5", { provider: "openai", model: "gpt-5" }],
    ["opencode", "openai/gpt-5", { provider: "openai", model: "gpt-5" }],
    ["opencode", "gpt-5", { provider: "anthropic", model: "gpt-5" }],
    ["gemini", "flash", "own"],
    ["gemini", "gemini-2.5-pro", { provider: "gemini", model: "gemini-2.5-pro" }],
    ["pi", "sonnet:high", "own"],
    ["line", "any", undefined],
    ["mine", "any", "own"],
    ["local", "qwen", { provider: "ollama", model: "qwen" }],
  ])("means to %s, as %s, what its program makes of it", (agent, model, expected) => {
    expect(adapters.of(agent)?.namedModel(model, ["anthropic", "openai", "gemini", "ollama"])).toEqual(expected);
  });
});
