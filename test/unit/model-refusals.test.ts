/** What the model gateway refuses, and whether an agent tries it again. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ModelShape } from "../../src/base/schema/model.ts";
import { answerOf, Refusal, REFUSALS, type RefusalKind } from "../../src/rules/models/refusal.ts";

const ROOM = join(import.meta.dirname, "../../src/rules/models");
const SHAPES = ModelShape.options;

/** Statuses by the order of the shapes, and the seconds after which trying again may help. */
const STATUSES: Readonly<Record<RefusalKind, readonly [anthropic: number, openai: number, gemini: number, retryAfter: number | null]>> = {
  invalid_request: [400, 400, 400, null],
  too_large: [413, 400, 400, null],
  no_such_call: [404, 404, 404, null],
  no_such_provider: [403, 400, 403, null],
  no_login: [403, 400, 403, null],
  login_refused: [403, 400, 403, null],
  model_refused: [403, 400, 403, null],
  secret_denied: [403, 400, 403, null],
  secret_held: [429, 503, 429, 10],
  budget_used_up: [402, 400, 402, null],
  budget_held: [429, 503, 429, 5],
  too_many_requests: [429, 503, 429, 2],
  sandbox_removed: [403, 400, 403, null],
  provider_unusable: [403, 400, 403, null],
  provider_unreachable: [502, 502, 502, 5],
  server_fault: [503, 503, 503, 5],
};

/** What each API's agents try again, as it was seen with the real programs; docs/MODELS.md names them. */
const TRIED_AGAIN: Readonly<Record<ModelShape, (status: number) => boolean>> = {
  anthropic: (status) => [408, 409, 429].includes(status) || status >= 500,
  // OpenCode tries 409 and 429 again, Codex all but 400 and 429.
  openai: (status) => ![400, 404].includes(status),
  gemini: (status) => status === 429 || status >= 500,
};

describe("a refusal of the model gateway", () => {
  const kinds = Object.keys(REFUSALS) as RefusalKind[];

  test.each(kinds)("%s has the status that agents of each API understand, in its own shape", (kind) => {
    const [, , , after] = STATUSES[kind];
    for (const [index, shape] of SHAPES.entries()) {
      const { status, headers, body } = answerOf(new Refusal(kind, "One sentence."), shape);
      expect(status, shape).toBe(STATUSES[kind][index]);
      expect(headers["retry-after"], shape).toBe(after === null ? undefined : String(after));
      expect(headers["x-should-retry"], shape).toBe(after === null ? "false" : undefined);
      expect(TRIED_AGAIN[shape](status), `${shape} ${status}`).toBe(after !== null);
      const { error } = JSON.parse(body) as { error: { message: string } };
      expect(error.message).toBe("One sentence.");
    }
  });

  test("is told in the words of each API", () => {
    const said = (shape: ModelShape, kind: RefusalKind) => JSON.parse(answerOf(new Refusal(kind, "No."), shape).body) as unknown;
    expect(said("anthropic", "budget_used_up")).toEqual({ type: "error", error: { type: "billing_error", message: "No." } });
    expect(said("openai", "budget_used_up")).toEqual({
      error: { message: "No.", type: "insufficient_quota", param: null, code: "insufficient_quota" },
    });
    expect(said("gemini", "budget_used_up")).toEqual({ error: { code: 402, message: "No.", status: "FAILED_PRECONDITION" } });
    expect(said("gemini", "budget_held")).toEqual({
      error: {
        code: 429,
        message: "No.",
        status: "RESOURCE_EXHAUSTED",
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "5s" }],
      },
    });
  });

  test("has a row in the list above and one in docs/MODELS.md", () => {
    expect(kinds.toSorted()).toEqual(Object.keys(STATUSES).toSorted());
    const rows = [
      ...readFileSync(join(ROOM, "../../../docs/MODELS.md"), "utf8").matchAll(
        /^\| `([a-z_]+)` \|.*\| (\d{3}) \| (\d{3}) \| (\d{3}) \| (?:(\d+) s|never) \|$/gm,
      ),
    ].map(([, kind, ...rest]) => [kind, rest.map((text) => (text === undefined ? null : Number(text)))]);
    expect(rows).toEqual(kinds.map((kind) => [kind, STATUSES[kind]]));
  });

  test("is the only error that the gateway throws while it serves: any other would be answered as a fault of the server", () => {
    const others = readdirSync(ROOM).filter(
      (name) => name !== "providers.ts" && /new (Viv)?Error\("/.test(readFileSync(join(ROOM, name), "utf8")),
    );
    // models.ts refuses a config of the server's own searches; in upstream.ts it is the cause of a timeout, which `unreachable` reads.
    expect(others.toSorted()).toEqual(["models.ts", "upstream.ts"]);
    const served = readFileSync(join(ROOM, "models.ts"), "utf8").match(/new VivError\("\w+"/g);
    expect(new Set(served)).toEqual(new Set(['new VivError("config_invalid"']));
  });
});
