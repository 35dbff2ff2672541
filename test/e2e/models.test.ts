/** NET-4 and NET-5: programs inside a real sandbox call model APIs of the test without ever holding the key. */
import { createServer as createTls } from "node:https";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { certificate } from "../support/certificates.ts";
import { CANARY, holders, scanFor } from "../support/canaries.ts";
import { openModelApi } from "../support/model-api.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** By curl, as a program inside calls it: the address and the key from its environment. */
const anthropic = (body: object, path = "/v1/messages"): string =>
  `curl -sS -N -w '\\n%{http_code}' "$ANTHROPIC_BASE_URL${path}" -H "x-api-key: $ANTHROPIC_API_KEY" -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
const openai = (path: string, body: object): string =>
  `curl -sS -N -w '\\n%{http_code}' "$OPENAI_BASE_URL${path}" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
const gemini = (call: string, body: object): string =>
  `curl -sS -N -w '\\n%{http_code}' "$GOOGLE_GEMINI_BASE_URL/v1beta/models/${call}" -H "x-goog-api-key: $GEMINI_API_KEY" -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
const ASK = { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: "hi" }] };

describe("model APIs inside a sandbox", needs("root", "openssl", "curl"), () => {
  let api: ScriptedModel;
  let server: TestServer;
  let box: string;

  const total = async (sandbox: string) => (await server.client.call("usage", { sandbox })).microDollars;

  beforeAll(async () => {
    api = await openModelApi();
    server = await TestServer.start({
      config: {
        models: {
          anthropic: { url: api.url, secret: "anthropic" },
          openai: { url: `${api.url}/v1`, secret: "openai" },
          gemini: { url: api.url, secret: "gemini" },
          unbound: { url: `${api.url}/v1`, secret: "elsewhere" },
        },
        prices: { "gpt-test": { input: 1, output: 10, cacheRead: 0.5 } },
        budgets: { sandbox: 0.05 },
      },
    });
    expect(
      viv(server, ["secret", "set", "anthropic", "--host", new URL(api.url).host, "--all-projects"], { input: `${CANARY}-a\n` }).code,
    ).toBe(0);
    expect(viv(server, ["secret", "set", "openai", "--host", new URL(api.url).host, "--all-projects"], { input: `${CANARY}-o` }).code).toBe(
      0,
    );
    expect(viv(server, ["secret", "set", "gemini", "--host", new URL(api.url).host, "--all-projects"], { input: `${CANARY}-g` }).code).toBe(
      0,
    );
    expect(viv(server, ["secret", "set", "elsewhere", "--host", "api.example.com", "--all-projects"], { input: `${CANARY}-e` }).code).toBe(
      0,
    );
    box = (await server.create()).id;
  });
  afterAll(async () => {
    api?.close();
    await server?.remove();
  });

  test("NET-5: Anthropic's messages get the key outside, and are counted", async () => {
    const { stdout } = await server.sh(box, anthropic(ASK));
    expect(stdout).toMatch(/"hello".*\n200$/s);
    expect(api.last.headers["x-api-key"]).toBe(`${CANARY}-a`);
    expect(api.last.headers["anthropic-version"]).toBe("2023-06-01");
    expect(api.last.body).toEqual(ASK);
    const { usage } = await server.client.call("usage", { sandbox: box });
    // 1000 * 3 + 500 * 15 + 2000 * 0.3 millionths of a dollar
    expect(usage).toMatchObject([
      { model: ASK.model, requests: 1, inputTokens: 1000, outputTokens: 500, cacheReadTokens: 2000, microDollars: 11_100 },
    ]);
  });

  test("NET-5: a stream arrives event by event while the API still writes it, and is counted", async () => {
    const before = await total(box);
    const gate = Promise.withResolvers<void>();
    api.gate = gate.promise;
    const { id } = await server.client.call("runCommand", {
      sandbox: box,
      command: ["/bin/sh", "-c", anthropic({ ...ASK, stream: true })],
      background: true,
    });
    const look = async () => server.client.call("inspectCommand", { sandbox: box, command: id });
    const early = await eventually(look, ({ stdout }) => stdout.includes("message_start"));
    expect(early.stdout).not.toContain("message_stop");
    gate.resolve();
    const late = await eventually(look, ({ running }) => !running);
    expect(late.stdout).toContain("message_stop");
    await eventually(
      () => total(box),
      (cost) => cost === before + 11_100,
    );
  });

  test("NET-5: OpenAI's chat and responses get the key outside, whole and streamed, and usage that the program did not ask for stays outside", async () => {
    const own = (await server.create()).id;
    for (const [path, stream] of [
      ["/chat/completions", false],
      ["/chat/completions", true],
      ["/responses", false],
      ["/v1/responses", true],
    ] as const) {
      const { stdout } = await server.sh(own, openai(path, { model: "gpt-test-1", stream }));
      expect(stdout).toMatch(/\n200$/);
      expect(api.last.headers.authorization).toBe(`Bearer ${CANARY}-o`);
      expect(stdout.includes("prompt_tokens"), `${path} ${stream}`).toBe(path === "/chat/completions" && !stream);
      expect(api.last.body["stream_options"]).toEqual(path === "/chat/completions" && stream ? { include_usage: true } : undefined);
    }
    const asked = await server.sh(
      own,
      openai("/chat/completions", { model: "gpt-test-1", stream: true, stream_options: { include_usage: true } }),
    );
    expect(asked.stdout).toContain("prompt_tokens");
    // Five times 1000 * 1 + 2000 * 0.5 + 500 * 10
    await eventually(
      () => total(own),
      (cost) => cost === 35_000,
    );
  });

  test("NET-5: Gemini's calls get the key outside, wherever the program put what stands for it, and are counted", async () => {
    const own = (await server.create()).id;
    const body = { contents: [{ role: "user", parts: [{ text: "hi" }] }], generationConfig: { maxOutputTokens: 100 } };
    for (const [call, sent] of [
      ["gpt-test-1:generateContent", ""],
      ["gpt-test-1:streamGenerateContent?alt=sse", "?alt=sse"],
      ["gpt-test-1:streamGenerateContent?key=$GEMINI_API_KEY&alt=sse", "?alt=sse"],
      ["gpt-test-1:streamGenerateContent?key=$GEMINI_API_KEY", ""],
    ] as const) {
      const { stdout } = await server.sh(own, gemini(call, body));
      expect(stdout, call).toMatch(/"finishReason":"STOP".*\n200$/s);
      expect(api.last.headers["x-goog-api-key"]).toBe(`${CANARY}-g`);
      expect(api.last.path.replace(/^[^?]*/, "")).toBe(sent);
      expect(api.last.body).toEqual(body);
    }
    // Four times 1000 * 1 + 2000 * 0.5 + 500 * 10
    await eventually(
      () => total(own),
      (cost) => cost === 28_000,
    );
    expect((await server.sh(own, gemini("gpt-test-1:countTokens", body))).stdout).toMatch(/"totalTokens":1000.*\n200$/s);
    expect(
      (
        await server.sh(
          own,
          gemini("", {})
            .replace("models/", "models")
            .replace(/ -d .*/, ""),
        )
      ).stdout,
    ).toMatch(/"models".*\n200$/s);
    const heard = api.received.length;
    // These would bring an answer without its counts.
    for (const call of ["gpt-test-1:generateContent?fields=candidates", "gpt-test-1:generateContent?alt=media", "m:batchGenerateContent"])
      expect((await server.sh(own, gemini(call, body))).stdout, call).toMatch(/"NOT_FOUND".*\n404$/s);
    expect(api.received.length).toBe(heard);
    expect((await server.sh(own, gemini("echo:generateContent", body))).stdout).not.toContain(CANARY);
    expect(await total(own)).toBe(28_000);
  });

  test("NET-4, SC-01: the key is nowhere inside: not in the environment, in files, in other processes or in a snapshot", async () => {
    const { stdout: environment } = await server.sh(box, "env; echo; cat /proc/self/environ | tr '\\0' '\\n'");
    expect(environment).toContain("ANTHROPIC_API_KEY=viv-secret-");
    expect(environment).not.toContain(CANARY);
    expect((await server.sh(box, scanFor(["/root", "/home", "/etc", "/tmp", "/var", "/run", server.project]))).stdout).toBe("");
    await server.client.call("createSnapshot", { sandbox: box });
    // The same scan finds what does lie inside.
    const { stdout } = await server.sh(box, `echo ${CANARY} > /tmp/planted; ${scanFor(["/tmp"])}; rm /tmp/planted`);
    expect(stdout).toContain("/tmp/planted");
  });

  test("SC-10: no file of the state folder, no answer of the API and no error holds a value", async () => {
    expect(holders(server.paths.home, `${CANARY}-`)).toEqual([]);
    expect(holders(server.paths.home, "127.0.0.1")).not.toEqual([]);
    const answers = [
      viv(server, ["secret", "ls", "--json"]),
      viv(server, ["secret", "ls"]),
      viv(server, ["audit", "--json"]),
      viv(server, ["secret", "set", "bad", "--host", "127.0.0.1", "--all-projects"], { input: `${CANARY}-\u0001\n` }),
      viv(server, ["secret", "set", "bad", "--host", "no host", "--all-projects"], { input: `${CANARY}-` }),
    ];
    expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 2, 2]);
    for (const { out, err } of answers) expect(out + err).not.toContain(`${CANARY}-`);
    expect(answers[0]?.out).toContain(`"hosts":["${new URL(api.url).host}"]`);
    expect(answers[2]?.out).toContain("secret.set");
  });

  test("AU-10: every request that got the key has one record of its use", async () => {
    const keyed = api.received.filter(({ headers }) => JSON.stringify(headers).includes(`${CANARY}-`)).length;
    const { records } = await server.client.call("listAudit", { limit: 1000 });
    const uses = records.filter(({ action }) => action === "secret.use");
    expect(uses.length).toBe(keyed);
    expect(keyed).toBeGreaterThan(5);
    expect(uses[0]).toMatchObject({
      target: "anthropic",
      sandbox: box,
      arguments: { host: "127.0.0.1", method: "POST", path: "/v1/messages" },
    });
  });

  test("SC-10: an API that repeats the key in its answer does not bring it inside", async () => {
    const { stdout } = await server.sh(box, `${anthropic({ ...ASK, model: "echo" })} -i`);
    expect(api.last.headers["x-api-key"]).toBe(`${CANARY}-a`);
    expect(stdout).toContain("bad key");
    expect(stdout).toMatch(/422$/);
    expect(stdout).not.toContain(CANARY);
    expect(stdout).not.toMatch(/set-cookie/i);
  });

  test("SC-02: a key goes to no host that it is not bound to, and follows no redirect", async () => {
    const heard = api.received.length;
    const denied = await server.sh(
      box,
      openai("/chat/completions", { model: "gpt-test-1" }).replace("$OPENAI_BASE_URL", "$UNBOUND_BASE_URL"),
    );
    expect(denied.stdout).toMatch(/not bound to.*\n400$/s);
    expect(api.received.length).toBe(heard);
    const moved = await server.sh(box, anthropic({ ...ASK, model: "elsewhere" }));
    expect(moved.stdout).toMatch(/"permission_error".*\n403$/s);
  });

  test("calls whose cost can't be read are not passed on", async () => {
    const heard = api.received.length;
    const lines = [
      anthropic(ASK, "/v1/messages/batches"),
      anthropic(ASK, "/v1/files"),
      anthropic(ASK, "/v1/messages/../files").replace("curl", "curl --path-as-is"),
      openai("/responses", { model: "gpt-test-1", background: true }),
      openai("/assistants", { model: "gpt-test-1" }),
      anthropic({ messages: [] }),
    ];
    for (const line of lines) expect((await server.sh(box, line)).stdout, line).toMatch(/"error".*\n40[04]$/s);
    expect(api.received.length).toBe(heard);
  });

  test("NET-5: a stream that is cut off inside is counted all the same", async () => {
    const own = (await server.create()).id;
    const gate = Promise.withResolvers<void>();
    api.gate = gate.promise;
    await server.sh(own, `${anthropic({ ...ASK, stream: true })} --max-time 2 | head -c 10`);
    gate.resolve();
    const counted = await eventually(
      () => total(own),
      (cost) => cost >= 1000 * 3 + 2000 * 0.3,
    );
    expect(counted).toBeLessThan(11_100);
  });

  test("SC-07: an API whose certificate no known authority signed gets no byte", async () => {
    const place = mkdtempSync(join(tmpdir(), "viv-tls-"));
    const certified = certificate(place, "127.0.0.1");
    const heard: string[] = [];
    const tls = createTls(certified, (request, response) => {
      heard.push(String(request.headers["x-api-key"]));
      response.end(JSON.stringify({ usage: { input_tokens: 1, output_tokens: 1 } }));
    }).listen(0, "127.0.0.1");
    await once(tls, "listening");
    const url = `https://127.0.0.1:${(tls.address() as AddressInfo).port}`;
    const own = await TestServer.start({ config: { models: { anthropic: { url, secret: "key" } } } });
    try {
      viv(own, ["secret", "set", "key", "--host", new URL(url).host, "--all-projects"], { input: CANARY });
      const sandbox = (await own.create()).id;
      expect((await own.sh(sandbox, anthropic(ASK))).stdout).toMatch(/SELF_SIGNED.*\n403$/s);
      expect(heard).toEqual([]);
      expect((await own.client.call("usage", { sandbox })).microDollars).toBe(0);
      // The same API with a certificate that the server trusts gets the key.
      await own.down();
      await own.up({ NODE_EXTRA_CA_CERTS: certified.file });
      expect((await own.sh(sandbox, anthropic(ASK))).stdout).toMatch(/\n200$/);
      expect(heard).toEqual([CANARY]);
    } finally {
      tls.close();
      rmSync(place, { recursive: true, force: true });
      await own.remove();
    }
  });

  test("NET-5: a budget stops the next request in the API's own words, also after the server was killed", async () => {
    const own = (await server.create()).id;
    const calls = Array.from({ length: 6 }, () => anthropic(ASK)).join("; ");
    const { stdout } = await server.sh(own, calls);
    // 11,100 each: the fifth passes 0.05 dollars, the sixth is refused.
    expect([...stdout.matchAll(/\n(\d{3})(?=\{|$)/g)].map(([, code]) => code)).toEqual(["200", "200", "200", "200", "200", "402"]);
    expect(stdout).toContain('"type":"billing_error"');
    const heard = api.received.length;
    await server.kill();
    await server.up();
    expect(await total(own)).toBe(55_500);
    const again = await eventually(
      () => server.sh(own, openai("/chat/completions", { model: "gpt-test-1" })),
      (result) => result.stdout.includes("\n400"),
    );
    expect(again.stdout).toContain('"code":"insufficient_quota"');
    expect(api.received.length).toBe(heard);
    expect(viv(server, ["usage", own]).out).toContain("$0.0555");
    expect(viv(server, ["audit", own]).out).toContain("model.request: anthropic/claude-sonnet-4-5 [DENIED]");
  });

  test("NET-5: a server that is killed while a stream runs has counted the most that it may cost", async () => {
    const own = (await server.create()).id;
    const gate = Promise.withResolvers<void>();
    api.gate = gate.promise;
    const heard = api.received.length;
    // 4,000 tokens at 15 dollars a million are more than the budget.
    await server.client.call("runCommand", {
      sandbox: own,
      command: ["/bin/sh", "-c", anthropic({ ...ASK, max_tokens: 4000, stream: true })],
      background: true,
    });
    await eventually(
      () => api.received.length,
      (length) => length > heard,
    );
    expect((await server.sh(own, anthropic(ASK))).stdout).toMatch(/"rate_limit_error".*\n429$/s);
    await server.kill();
    gate.resolve();
    await server.up();
    expect(await total(own)).toBeGreaterThanOrEqual(60_000);
    const after = await eventually(
      () => server.sh(own, anthropic(ASK)),
      ({ stdout }) => stdout.includes("\n402"),
    );
    expect(after.stdout).toContain("billing_error");
    expect(api.received.length).toBe(heard + 1);
  });

  test("SC-13: a replaced key is used at once, a removed one never again, and programs inside are told", async () => {
    viv(server, ["secret", "set", "anthropic", "--host", new URL(api.url).host], { input: `${CANARY}-second` });
    const own = (await server.create()).id;
    await server.sh(own, anthropic(ASK));
    expect(api.last.headers["x-api-key"]).toBe(`${CANARY}-second`);
    const heard = api.received.length;
    expect(viv(server, ["secret", "rm", "anthropic"]).code).toBe(0);
    const { stdout } = await server.sh(own, anthropic(ASK).replace("$ANTHROPIC_BASE_URL", "http://127.0.0.1:4097/model/anthropic"));
    expect(stdout).toMatch(/no secret anthropic.*\n403$/s);
    expect(api.received.length).toBe(heard);
    expect((await server.sh(own, "env")).stdout).not.toContain("ANTHROPIC_");
  });
});
