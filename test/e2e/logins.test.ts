/** NET-4: logins of agents stay outside: an API key, or the long-lived token of a subscription. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CANARY, holders, scanFor } from "../support/canaries.ts";
import { openModelApi } from "../support/model-api.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { Terminal } from "../support/terminal.ts";
import { viv } from "../support/viv.ts";

const TOKEN = `sk-ant-oat01-${CANARY}`;
const ASK = { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: "hi" }] };
/** As Claude Code does it with the token of a subscription. */
const claude = (body: object, more = ""): string =>
  `curl -sS -w '\\n%{http_code}' "$ANTHROPIC_BASE_URL/v1/messages" -H "authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN" ${more} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;

describe("the token of a subscription", needs("root", "curl"), () => {
  let api: ScriptedModel;
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    api = await openModelApi();
    server = await TestServer.start({
      config: { models: { anthropic: { url: api.url, secret: "anthropic" } }, budgets: { sandbox: 0.03 } },
    });
    await server.client.call("setSecret", {
      secret: "anthropic",
      value: TOKEN,
      hosts: [new URL(api.url).host],
      kind: "subscription",
      projects: null,
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    api?.close();
    await server?.remove();
  });

  test("NET-4: is a placeholder inside, under the name that Claude Code looks for, and no key stands beside it", async () => {
    const { stdout } = await server.sh(box, "env");
    expect(stdout).toMatch(/^CLAUDE_CODE_OAUTH_TOKEN=viv-secret-/m);
    expect(stdout).toMatch(/^ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:4097\/model\/anthropic$/m);
    expect(stdout).not.toContain("ANTHROPIC_API_KEY");
    expect((await server.client.call("listSecrets", {})).secrets).toMatchObject([{ name: "anthropic", kind: "subscription" }]);
  });

  test("NET-4: is sent as a Bearer with what Anthropic wants beside it, whatever the program names itself", async () => {
    for (const [beta, sent] of [
      ["", "oauth-2025-04-20"],
      ["-H 'anthropic-beta: claude-code-20250219'", "claude-code-20250219,oauth-2025-04-20"],
      ["-H 'anthropic-beta: oauth-2025-04-20,other-1'", "oauth-2025-04-20,other-1"],
    ] as const) {
      expect((await server.sh(box, claude({ ...ASK, max_tokens: 1 }, beta))).stdout).toMatch(/\n200$/);
      expect(api.last.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, "anthropic-beta": sent });
      expect(api.last.headers["x-api-key"]).toBeUndefined();
    }
  });

  test("NET-4: that expired ends the agent with the command that renews it, and is in the audit trail and the events", async () => {
    const own = (await server.create()).id;
    const { stdout } = await server.sh(own, claude({ ...ASK, model: "expired" }, "-i"));
    const sentence = "The login of anthropic was refused: run `viv agents login claude`.";
    expect(stdout).toContain(sentence);
    expect(stdout).toMatch(/"permission_error".*\n403$/s);
    expect(stdout).toMatch(/x-should-retry: false/i);
    const { records } = await server.client.call("listAudit", { sandbox: own });
    expect(records.find(({ action }) => action === "model.request")).toMatchObject({
      target: "anthropic/expired",
      label: "DENIED",
      reason: sentence,
    });
    await server.sh(own, claude({ ...ASK, model: "expired" }));
    const { events } = await server.client.call("listEvents", { sandbox: own });
    // Once, however often the program asks.
    expect(events.filter(({ type }) => type === "model.refused")).toMatchObject([
      { data: { provider: "anthropic", refusal: "login_refused", reason: sentence } },
    ]);
    expect((await server.client.call("usage", { sandbox: own })).microDollars).toBe(0);
  });

  test("NET-5: counts against budgets by the table of prices, and costs nothing as soon as the user's config says so", async () => {
    const own = (await server.create()).id;
    const spent = async () => (await server.client.call("usage", { sandbox: own })).microDollars;
    for (let call = 0; call < 3; call += 1) expect((await server.sh(own, claude(ASK))).stdout).toMatch(/\n200$/);
    expect(await spent()).toBe(33_300);
    expect((await server.sh(own, claude(ASK))).stdout).toMatch(/"billing_error".*\n402$/s);
    const before = readFileSync(server.paths.config, "utf8");
    // What can't be read changes nothing.
    writeFileSync(server.paths.config, "{ nonsense");
    expect((await server.sh(own, claude(ASK))).stdout).toMatch(/\n402$/);
    writeFileSync(server.paths.config, before.replace('"secret":"anthropic"', '"secret":"anthropic","cost":"none"'));
    expect((await server.sh(own, claude(ASK))).stdout).toMatch(/\n200$/);
    await eventually(
      () => server.client.call("usage", { sandbox: own }),
      ({ usage }) => usage[0]?.requests === 4 && usage[0].inputTokens === 4000,
    );
    expect(await spent()).toBe(33_300);
    writeFileSync(server.paths.config, before);
  });

  test("NET-4, SC-01: is nowhere inside, in no log, no answer and no file of the state folder", async () => {
    expect((await server.sh(box, scanFor(["/root", "/home", "/etc", "/tmp", "/var", "/run", server.project]))).stdout).toBe("");
    const { stdout } = await server.sh(box, `echo ${CANARY} > /tmp/planted; ${scanFor(["/tmp"])}; rm /tmp/planted`);
    expect(stdout).toContain("/tmp/planted");
    expect(server.log).toContain("what it said of models before holds");
    expect(server.log).not.toContain(TOKEN);
    expect(holders(server.paths.home, TOKEN)).toEqual([]);
    for (const words of [
      ["secret", "ls", "--json"],
      ["audit", "--json"],
      ["events", "--json"],
    ])
      expect(viv(server, words).out, words.join(" ")).not.toContain(TOKEN);
  });
});

describe("viv agents login", needs("root", "curl"), () => {
  let api: ScriptedModel;
  let server: TestServer;
  const key = `sk-proj-${CANARY}`;
  const secrets = async () => (await server.client.call("listSecrets", {})).secrets;

  beforeAll(async () => {
    api = await openModelApi();
    server = await TestServer.start();
    writeFileSync(
      server.paths.config,
      `{\n  // of the team\n  "models": {\n    "anthropic": { "url": "${api.url}", "secret": "claude-login" } // a fake\n  }\n}\n`,
    );
  });
  afterAll(async () => {
    api?.close();
    await server?.remove();
  });

  test("NET-4: keeps a subscription's token from a pipe for the host of the provider, and a sandbox that runs uses it at once", async () => {
    const box = (await server.create()).id;
    const before = readFileSync(server.paths.config, "utf8");
    const { code, out, err } = viv(server, ["agents", "login", "claude", "--all-projects"], { input: `${TOKEN}\n` });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("The subscription token of claude is kept as the secret claude-login");
    expect(out).not.toContain(CANARY);
    expect(readFileSync(server.paths.config, "utf8")).toBe(before);
    expect(await secrets()).toMatchObject([{ name: "claude-login", kind: "subscription", hosts: [new URL(api.url).host], projects: null }]);
    expect((await server.sh(box, claude(ASK))).stdout).toMatch(/\n200$/);
    expect(api.last.headers.authorization).toBe(`Bearer ${TOKEN}`);
  });

  test("NET-4: a key in its place is sent as a key, and logging out ends both", async () => {
    const box = (await server.create()).id;
    const answer = viv(server, ["agents", "login", "claude", "--json"], { input: `sk-ant-api03-${CANARY}` });
    expect(JSON.parse(answer.out)).toMatchObject({
      agent: "claude",
      provider: "anthropic",
      login: { name: "claude-login", kind: "key", projects: null },
      config: { changed: false },
    });
    expect(answer.out + answer.err).not.toContain(CANARY);
    const { stdout } = await server.sh(box, "env");
    expect(stdout).toMatch(/^ANTHROPIC_API_KEY=viv-secret-/m);
    expect(stdout).not.toContain("CLAUDE_CODE_OAUTH_TOKEN");
    expect(viv(server, ["agents", "logout", "claude"]).out).toContain("The login of claude is forgotten.");
    expect(viv(server, ["agents", "logout", "claude"])).toMatchObject({ code: 2 });
    expect((await server.sh(box, "env")).stdout).not.toContain("ANTHROPIC_");
    const refused = await server.sh(box, claude(ASK).replace("$ANTHROPIC_BASE_URL", "http://127.0.0.1:4097/model/anthropic"));
    expect(refused.stdout).toMatch(/Run `viv agents login claude`.*\n403$/s);
  });

  test("writes the provider into the config with its comments, shows it first, and the server that runs knows it", async () => {
    const box = (await server.create()).id;
    const { code, err } = viv(server, ["agents", "login", "codex", "--all-projects"], { input: key });
    expect(code).toBe(0);
    expect(err).toMatch(/config\.json gets:\n(.*\n)*.*\+ .*"openai": \{/);
    const text = readFileSync(server.paths.config, "utf8");
    expect(text).toContain("// of the team");
    expect(text).toContain("// a fake");
    expect(await secrets()).toMatchObject([{ name: "openai", kind: "key", hosts: ["api.openai.com"] }]);
    expect((await server.sh(box, "env")).stdout).toMatch(/^OPENAI_API_KEY=viv-secret-/m);
    expect(viv(server, ["agents", "logout", "codex"]).out).toContain("opencode, pi, codex-acp for openai");
  });

  test("says what it can't do before it asks for anything", async () => {
    for (const [words, said] of [
      [["nobody"], "The agents are claude, codex, opencode, gemini, pi"],
      [["codex", "--provider", "anthropic"], "It can use openai"],
      [["codex", "--subscription"], "Only Claude Code takes the token of a subscription"],
      [["gemini"], "Add --project PATH for one project, or --all-projects"],
      [["pi", "--all-projects"], "Only Claude Code takes the token of a subscription"],
    ] as const) {
      const { code, err } = viv(server, ["agents", "login", ...words], { input: TOKEN });
      expect({ code, words }).toEqual({ code: 2, words });
      expect(err).toContain(said);
      expect(err).not.toContain(CANARY);
    }
    expect(await secrets()).toEqual([]);
    expect(readFileSync(server.paths.config, "utf8")).not.toContain("gemini");
  });

  test("SC-10: asks for the key on a terminal without showing it, after a yes to the change of the config", async () => {
    const terminal = new Terminal(server, ["agents", "login", "gemini", "--all-projects"]);
    try {
      await terminal.until("Write it? [y/N]");
      await terminal.until("API key for gemini:", "y\r");
      terminal.type(key);
      terminal.type("\r");
      await terminal.until("The API key of gemini is kept as the secret gemini");
      expect(await terminal.end()).toBe(0);
      expect(terminal.shown).not.toContain(CANARY);
      expect(await secrets()).toMatchObject([{ name: "gemini", hosts: ["generativelanguage.googleapis.com"] }]);
      expect(holders(server.paths.home, CANARY)).toEqual([]);
      expect(server.log).not.toContain(CANARY);
    } finally {
      terminal.close();
    }
  });
});
