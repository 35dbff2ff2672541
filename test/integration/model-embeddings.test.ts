/** AGT-6: vectors of conversations from a model API, with its key outside, counted, and never in the way of a search. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BudgetsConfig } from "../../src/base/schema/model.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Models } from "../../src/rules/models/models.ts";
import { ModelSettings } from "../../src/rules/models/settings.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { Conversations } from "../../src/work/conversations/conversations.ts";
import { ExtractiveSummarizer } from "../../src/work/conversations/extractive-summarizer.ts";
import { ModelEmbedder } from "../../src/work/conversations/model-embedder.ts";
import { eventually } from "../support/server.ts";

const KEY = "the-key-of-the-api";
const log = { info: () => undefined, warn: () => undefined };
const run = newId("run");

interface Asked {
  readonly model: string;
  readonly input: readonly string[];
}

/** An API that knows one meaning: animals. */
class EmbeddingsApi {
  readonly received: { path: string; key: string | undefined; asked: Asked }[] = [];
  status = 200;
  /** What it answers for all texts together, instead of one vector for each. */
  wrong: unknown;
  readonly #server: Server = createServer((request, response) => {
    void this.#answer(request).then((body) => response.writeHead(this.status, { "content-type": "application/json" }).end(body));
  });

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage): Promise<string> {
    const asked = (await json(request)) as Asked;
    this.received.push({ path: request.url ?? "", key: request.headers.authorization, asked });
    const data = asked.input.map((text, index) => ({ index, embedding: /cat|feline|dog/.test(text) ? [1, 0.1, 0] : [0, 0.1, 1] }));
    return JSON.stringify(this.wrong ?? { data: data.toReversed(), usage: { prompt_tokens: 100, total_tokens: 100 } });
  }
}

describe("vectors from a model API", () => {
  let place: string;
  let api: EmbeddingsApi;
  let store: Store;
  let audit: Audit;
  let conversations: Conversations;

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-embeddings-"));
    api = new EmbeddingsApi();
  });
  afterEach(async () => {
    await conversations.close();
    await store.close();
    api.close();
    rmSync(place, { recursive: true, force: true });
  });

  async function up(budgets: BudgetsConfig = {}, provider = "own"): Promise<void> {
    const host = await api.listen();
    store = await openSqliteStore(join(place, "vivarium.db"));
    audit = new Audit(store, join(place, "anchor"), () => undefined);
    const secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")), { reserved: new Set(["key"]) });
    await secrets.set("key", KEY, { hosts: [host], methods: [], path: null, header: null }, null);
    const models = { own: { url: `http://${host}/v1`, secret: "key" } };
    const settings = new ModelSettings({ models, prices: { small: { input: 10, output: 0 } }, budgets });
    const interceptor = new SecretInterceptor(secrets, place);
    const gateway = new Models({ store, audit, secrets, interceptor, settings, log, touch: () => undefined });
    const embedder = new ModelEmbedder(gateway, { provider, model: "small" });
    conversations = new Conversations({ store, log, embedder, summarizer: new ExtractiveSummarizer() });
    const said = ["The cat sat.", "Rain fell.", ""].map((text) => ({ role: "agent", kind: "text", text }) as const);
    await store.change((change) => conversations.append(change, { run, project: "/p" }, said));
  }

  test("AGT-6: find what no word says, and are asked for with the key, counted and recorded", async () => {
    await up();
    const [first] = await conversations.search("feline", { run });
    expect(first).toMatchObject({ excerpt: "The cat sat.", by: ["meaning"] });
    expect(api.received.map(({ path, key, asked }) => [path, key, asked.model, asked.input.length])).toEqual([
      ["/v1/embeddings", `Bearer ${KEY}`, "small", 3],
      ["/v1/embeddings", `Bearer ${KEY}`, "small", 1],
    ]);
    const used = { sandbox: "server", requests: 2, inputTokens: 200, microDollars: 2_000 };
    expect(await store.usage.list({})).toMatchObject([{ provider: "own", model: "small", ...used }]);
    const records = await audit.list({ after: 0, limit: 100 });
    expect(records.filter(({ action }) => action === "secret.use")).toMatchObject([
      { actor: { kind: "server" }, target: "key", sandbox: null },
      { actor: { kind: "server" }, target: "key", sandbox: null },
    ]);
    // What has a vector is not asked for again.
    await conversations.search("dog", { run });
    expect(api.received).toHaveLength(3);
  });

  test.each<[string, { status?: number; wrong?: unknown }]>([
    ["an error", { status: 500 }],
    ["a refused login", { status: 401 }],
    ["a redirect", { status: 307 }],
    ["too few vectors", { wrong: { data: [] } }],
    ["vectors of different lengths", { wrong: { data: [[1], [1, 1], [1]].map((embedding, index) => ({ index, embedding })) } }],
    ["something else", { wrong: "hello" }],
  ])("AGT-6: leave a search by words where the API gives %s", async (_, answer) => {
    await up();
    Object.assign(api, answer);
    expect(await conversations.search("cats", { run })).toMatchObject([{ excerpt: "The cat sat.", by: ["words"] }]);
    expect((await store.conversations.search.vectors("own/small", {}, 0, 9)).length).toBe(0);
  });

  test("AGT-6: cost nothing where the API refuses, and end with the budget of the day", async () => {
    await up({ day: 0.000_9 });
    api.status = 429;
    await conversations.search("cats", { run });
    expect(await store.usage.spent({})).toBe(0);
    api.status = 200;
    await conversations.search("cats", { run });
    const heard = api.received.length;
    expect(await conversations.search("cats", { run })).toMatchObject([{ by: ["words"] }]);
    expect(api.received.length).toBe(heard);
  });

  test("AGT-6: are not asked for again and again with every record where the API refuses", async () => {
    api.status = 500;
    await up();
    await eventually(
      () => api.received.length,
      (heard) => heard > 0,
    );
    // The first of these may come before the answer has.
    for (let time = 0; time < 5; time += 1) {
      const more = { role: "agent", kind: "text", text: `more ${time}` } as const;
      await store.change((change) => conversations.append(change, { run, project: "/p" }, [more]));
      await delay(250);
    }
    expect(api.received).toHaveLength(1);
  });

  test("AGT-6: leave a search by words where the config names no such API", async () => {
    await up({}, "other");
    expect(await conversations.search("cats", { run })).toMatchObject([{ by: ["words"] }]);
    expect(api.received).toEqual([]);
  });
});
