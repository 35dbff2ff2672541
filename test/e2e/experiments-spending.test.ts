/** EXP-2: what an attempt moved over the network and spent on models stands beside its other figures. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attempt, Lab } from "../support/experiments.ts";
import { openModelApi } from "../support/model-api.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const BYTES = 100_000;
const ASK = JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 10, messages: [{ role: "user", content: "hi" }] });

describe("an attempt that uses network and models", needs("root", "curl"), () => {
  let api: ScriptedModel;
  let resolver: TestResolver;
  let web: Server;
  let server: TestServer;

  beforeAll(async () => {
    api = await openModelApi();
    resolver = await TestResolver.open();
    resolver.names.set("allowed.test", ["127.0.0.2"]);
    web = createServer((_, response) => response.end(Buffer.alloc(BYTES, "x"))).listen(0, "127.0.0.2");
    await once(web, "listening");
    const { port } = web.address() as AddressInfo;
    server = await TestServer.start({
      config: {
        network: { private: [{ host: "allowed.test", ports: [port] }], resolvers: [resolver.address] },
        models: { anthropic: { url: api.url, secret: "anthropic" } },
      },
      files: { "vivarium.json": JSON.stringify({ network: { mode: "allow-list" } }) },
    });
    await server.client.call("trust", { project: server.project });
    expect(viv(server, ["secret", "set", "anthropic", "--host", new URL(api.url).host, "--all-projects"], { input: "a-key\n" }).code).toBe(
      0,
    );
  });
  afterAll(async () => {
    web.close();
    resolver.close();
    await server?.remove();
    api.close();
  });

  test("EXP-2: says how many bytes and dollars, and the table shows both", async () => {
    const { port } = web.address() as AddressInfo;
    const asks = `curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' -d '${ASK}'`;
    const ended = await new Lab(server).run(["true", `curl -sSf -o /dev/null http://allowed.test:${port}/`, asks]);
    expect(attempt(ended, "a")).toMatchObject({ exitCode: 0, networkBytes: 0, cost: null });
    expect(attempt(ended, "b")).toMatchObject({ exitCode: 0, cost: null });
    expect(attempt(ended, "b").networkBytes).toBeGreaterThan(BYTES);
    expect(attempt(ended, "b").networkBytes).toBeLessThan(BYTES + 5_000);
    expect(attempt(ended, "c")).toMatchObject({ exitCode: 0, networkBytes: 0 });
    expect(attempt(ended, "c").cost).toBeGreaterThan(0);
    const { out } = viv(server, ["experiment", ended.id]);
    expect(out).toMatch(/NETWORK +COST/);
    expect(out).toMatch(/9\d\.\d KiB/);
  });
});
