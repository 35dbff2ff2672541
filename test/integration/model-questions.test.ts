/** A model API whose key is not for the project: a person is asked, and the agent is told to wait or to end. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Models } from "../../src/rules/models/models.ts";
import { ModelSettings } from "../../src/rules/models/settings.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { openModelApi } from "../support/model-api.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { aSandboxRow } from "../support/rows.ts";

const ROW = aSandboxRow({ id: "sbx00000000000000000000000001", name: "one", project: "/p" });

describe("the key of a model API that is not for the project", () => {
  let place: string;
  let store: Store;
  let audit: Audit;
  let approvals: Approvals;
  let api: ScriptedModel;
  let server: Server;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-questions-"));
    api = await openModelApi();
    store = await openSqliteStore(join(place, "vivarium.db"));
    audit = new Audit(store, join(place, "anchor"), () => undefined);
    approvals = new Approvals(store, audit, join(place, "approver-token"), () => undefined);
    const settings = new ModelSettings({
      models: { anthropic: { url: api.url, secret: "key" }, openai: { url: `${api.url}/v1`, secret: "key" } },
      prices: {},
      budgets: {},
    });
    const secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")), {
      reserved: { has: (secret) => settings.isLogin(secret) },
      approvals,
      holdMs: 100,
    });
    await secrets.set("key", "the-key-of-the-api", { hosts: [new URL(api.url).host], methods: [], path: null, header: null }, []);
    await store.change((change) => change.sandboxes.put(ROW));
    const models = new Models({
      store,
      audit,
      secrets,
      interceptor: new SecretInterceptor(secrets, place),
      settings,
      log: { info: () => undefined, warn: () => undefined },
      touch: () => undefined,
    });
    server = createServer((request, response) => void models.serve(ROW.id, request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    api.close();
    await audit.close();
    await store.close();
    rmSync(place, { recursive: true, force: true });
  });

  const ask = (path: string): Promise<Response> =>
    fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/model/${path}`, {
      method: "POST",
      body: JSON.stringify({ model: "m", max_tokens: 1, messages: [] }),
    });

  test("SC-14: makes an agent wait while the question waits, and end when a person said no", async () => {
    const held = await ask("anthropic/v1/messages");
    expect([held.status, held.headers.get("retry-after"), held.headers.get("x-should-retry")]).toEqual([429, "10", null]);
    const [question] = await approvals.list(false);
    expect(((await held.json()) as { error: { message: string } }).error.message).toContain(`viv approve ${question?.id}`);
    expect((await ask("openai/chat/completions")).status).toBe(503);
    expect(await approvals.list(false)).toHaveLength(1);
    await approvals.answer(question?.id ?? "", "deny", readFileSync(join(place, "approver-token"), "utf8").trim());
    for (const [path, status] of [
      ["anthropic/v1/messages", 403],
      ["openai/chat/completions", 400],
    ] as const) {
      const denied = await ask(path);
      expect([denied.status, denied.headers.get("retry-after"), denied.headers.get("x-should-retry")]).toEqual([status, null, "false"]);
      expect(await denied.text()).toContain("the answer is no");
    }
    expect(api.received).toEqual([]);
  });
});
