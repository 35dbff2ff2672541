/** Attacks on the model gateway: by a program inside that wants more than its budget, and by an API that lies. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Models } from "../../src/rules/models/models.ts";
import { ModelSettings } from "../../src/rules/models/settings.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";

const ROW = aSandboxRow({ id: "sbx00000000000000000000000001", name: "one", project: "/p" });
const USAGE = { input_tokens: 1, output_tokens: 1 };

describe("the model gateway under attack", () => {
  let place: string;
  let store: Store;
  let audit: Audit;
  let port: number;
  const servers: Server[] = [];
  const heard: string[] = [];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;

  async function listen(server: Server): Promise<number> {
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  beforeEach(async () => {
    heard.length = 0;
    place = mkdtempSync(join(tmpdir(), "viv-models-"));
    const api = await listen(
      createServer((request, response) => {
        void text(request).then((body) => {
          heard.push(body);
          answer(request, response);
        });
      }),
    );
    store = await openSqliteStore(join(place, "vivarium.db"));
    audit = new Audit(store, join(place, "anchor"), () => undefined);
    const secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")), { reserved: new Set(["key"]) });
    await secrets.set("key", "the-key-of-the-api", { hosts: [`127.0.0.1:${api}`], methods: [], path: null, header: null }, null);
    await store.change((change) => change.sandboxes.put(ROW));
    const models = new Models({
      store,
      audit,
      secrets,
      interceptor: new SecretInterceptor(secrets, place),
      settings: new ModelSettings({
        models: { anthropic: { url: `http://127.0.0.1:${api}`, secret: "key" } },
        prices: { cheap: { input: 1, output: 1 }, dear: { input: 100, output: 100 } },
        budgets: { project: 1 },
      }),
      log: { info: () => undefined, warn: () => undefined },
      touch: () => undefined,
    });
    port = await listen(createServer((request, response) => void models.serve(ROW.id, request, response)));
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
    await audit.close();
    await store.close();
    rmSync(place, { recursive: true, force: true });
  });

  const ask = async (body: string): Promise<number> => {
    const said = await fetch(`http://127.0.0.1:${port}/model/anthropic/v1/messages`, { method: "POST", body });
    await said.arrayBuffer();
    return said.status;
  };
  const whole = (usage: object) => (_: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ type: "message", content: [], usage }));

  test("NET-5: what is priced is what counts: a request in which a field stands twice is not sent", async () => {
    answer = whole(USAGE);
    expect(await ask(`{"model":"dear","messages":[],"model":"cheap","max_tokens":5}`)).toBe(400);
    expect(await ask(`{"model":"cheap","max_tokens":90000,"a":"\\\\","max_tok\\u0065ns":5}`)).toBe(400);
    expect(heard).toEqual([]);
    // What only looks like it is sent as it was.
    const fine = `{"model":"cheap","max_tokens":5,"messages":[{"model":"x","a":"\\",\\"model\\":{"}],"n":12345678901234567890,"\\\\":{"model":1}}`;
    expect(await ask(fine)).toBe(200);
    expect(heard).toEqual([fine]);
  });

  test("NET-5: a program that hangs up in the middle of many events leaves nothing that is held", async () => {
    const event = `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", delta: { text: "x".repeat(40_000) } })}\n\n`;
    answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event.repeat(200));
    };
    const body = `{"model":"cheap","max_tokens":400000,"stream":true,"messages":[]}`;
    for (let round = 0; round < 3; round += 1) {
      const client = connect(port, "127.0.0.1");
      client.on("error", () => undefined);
      client.write(`POST /model/anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await once(client, "data");
      client.pause();
      // It is full by now, and more is there to be written.
      await new Promise((resolve) => setTimeout(resolve, 100));
      client.destroy();
    }
    // Three of them hold more than the budget until they are settled; what they have written by then is as much.
    answer = whole(USAGE);
    const settled = await eventually(
      () => ask(`{"model":"cheap","max_tokens":5,"messages":[]}`),
      (status) => status !== 429,
    );
    expect(settled).toBe(402);
  });

  test("RS-12: a body that is crowded or deep is refused before it takes the server's time", async () => {
    answer = whole(USAGE);
    const filled = (unit: string, last: string): string =>
      `{"model":"cheap","messages":[${unit.repeat((LIMITS.modelBodyBytes - 100) / unit.length)}${last}]}`;
    for (const body of [filled("{},", "{}"), filled("0,", "0"), filled("[", "")]) expect(await ask(body)).toBe(413);
    expect(heard).toEqual([]);
    // One text of that length is fine.
    expect(await ask(`{"model":"cheap","max_tokens":1,"messages":["${"x".repeat(1_000_000)}"]}`)).toBe(200);
  });

  test("RS-12: bodies of one sandbox have a limit together, and free it when they are gone", async () => {
    answer = whole(USAGE);
    const size = LIMITS.modelBodyBytes - 1;
    const clients = Array.from({ length: Math.ceil(LIMITS.modelTogetherBytes / size) + 1 }, () => {
      const client = connect(port, "127.0.0.1");
      client.on("error", () => undefined);
      client.write(`POST /model/anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${size}\r\n\r\n`);
      // All but the end, which never comes.
      client.write(Buffer.alloc(size - 1));
      return client;
    });
    const said = await Promise.race(clients.map(async (client) => String((await once(client, "data"))[0])));
    expect(said).toMatch(/^HTTP\/1.1 429 .*too large together/s);
    for (const client of clients) client.destroy();
    await eventually(
      () => ask(`{"model":"cheap","max_tokens":1,"messages":[]}`),
      (status) => status === 200,
    );
  });

  test("NET-5: who hangs up before a whole answer pays for all that it may have been", async () => {
    answer = () => undefined;
    const body = `{"model":"cheap","max_tokens":100000,"messages":[]}`;
    const client = connect(port, "127.0.0.1");
    client.on("error", () => undefined);
    client.write(`POST /model/anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await eventually(
      async () => heard.length,
      (requests) => requests === 1,
    );
    client.destroy();
    // Settled, it is no longer held by a request under way, and stays spent.
    await eventually(
      async () => (await store.usage.list({})).map(({ outputTokens }) => outputTokens),
      ([tokens]) => tokens === 100_000,
    );
    expect(await store.usage.spent({ project: "/p" })).toBeGreaterThanOrEqual(100_000);
  });

  test("NET-5: counts that no answer can have are none", async () => {
    answer = whole({ input_tokens: 1e300, output_tokens: 1e308 });
    expect(await ask(`{"model":"cheap","max_tokens":5,"messages":[]}`)).toBe(200);
    const spent = await store.usage.spent({ project: "/p" });
    expect(spent).toBeGreaterThan(0);
    expect(spent).toBeLessThan(1_000_000);
    answer = whole(USAGE);
    expect(await ask(`{"model":"cheap","max_tokens":5,"messages":[]}`)).toBe(200);
  });
});
