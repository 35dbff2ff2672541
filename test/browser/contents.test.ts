/** What the pages of a sandbox and of the machine say, with one of each thing there: figures, names, verdicts. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { BrowserLab, type Visitor } from "../support/browser-lab.ts";
import { TestResolver } from "../support/origins.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const MODEL = "claude-sonnet-4-5";
const PRICE = { input: 1_000, output: 2_000, cacheRead: 0 };
/** 1,000 tokens in, 500 out, at the prices above, which are for a million. */
const COST = "$2.00";
const VALUE = "not-to-be-seen-anywhere";

describe("contents of pages (WEB-1)", needs("chromium", "root", "curl"), () => {
  let api: ScriptedModel;
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let lab: BrowserLab;

  beforeAll(async () => {
    api = await ScriptedModel.open({});
    resolver = await TestResolver.open();
    resolver.names.set("shop.test", ["127.0.0.2"]);
    web = createServer((_, response) => response.writeHead(201).end("x".repeat(3_000))).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    const network = { mode: "allow-list", private: [{ host: "shop.test", ports: [port] }], resolvers: [resolver.address] };
    const models = { anthropic: { url: api.url, secret: "anthropic" } };
    const server = await TestServer.start({ config: { models, network, prices: { [MODEL]: PRICE } } });
    const runs = RunLab.on(server);
    for (const [name, host] of [
      ["anthropic", new URL(api.url).host],
      ["deploy-key", "deploy.example.com"],
    ] as const)
      viv(server, ["secret", "set", name, "--host", host, "--all-projects"], { input: `${VALUE}\n` });
    lab = await BrowserLab.before(server);
    const { id } = await runs.begin([`spend ${MODEL}`, "text Done"]);
    await runs.ended(id);
    await server.create({ name: "seen" });
    await server.sh("seen", "echo told; exit 3");
    await server.sh("seen", `curl -sS -d amount=7 http://shop.test:${port}/orders; curl -sS http://closed.test/`);
    await server.sh("seen", "sleep 4321 > /dev/null 2>&1 &");
  });

  afterAll(async () => {
    web?.close();
    resolver?.close();
    api?.close();
    await lab?.close();
  });

  /** The page, with a picture of it once it says all that it should. */
  async function says(path: string, name: string, what: (visitor: Visitor) => readonly Locator[]): Promise<Visitor> {
    const visitor = await lab.visit(path);
    for (const one of what(visitor)) await one.first().waitFor();
    await lab.picture(visitor, name);
    return visitor;
  }

  const row = (visitor: Visitor, section: string, ...texts: readonly (string | RegExp)[]): Locator =>
    texts.reduce<Locator>(
      (rows, hasText) => rows.filter({ hasText }),
      visitor.page.getByRole("region", { name: section }).getByRole("row"),
    );

  test("costs are told by day, model and agent, with their tokens", async () => {
    const { troubles } = await says("/machine?show=costs", "machine-costs", (at) => [
      row(at, "By day", new Date().toISOString().slice(0, 10), COST),
      row(at, "By model", MODEL, COST, /[\d.]+k tokens/),
      row(at, "By agent", "claude", COST),
      at.page
        .getByText(COST)
        .getByText("today")
        .or(at.page.getByText(/No budget for a day is set/)),
    ]);
    expect(troubles).toEqual([]);
  });

  test("secrets are told by name and host, never by value", async () => {
    const { page, troubles } = await says("/machine?show=secrets", "machine-secrets", ({ page: at }) => [
      at.getByRole("row").filter({ hasText: "deploy-key" }).filter({ hasText: "deploy.example.com" }),
    ]);
    expect(await page.content()).not.toContain(VALUE);
    expect(troubles).toEqual([]);
  });

  test("the audit of the machine is verified, and says who did what", async () => {
    const { page, troubles } = await says("/machine?show=audit", "machine-audit", ({ page: at }) => [
      at.getByText(/^The chain of \d+ records is whole/),
      at.getByRole("row").filter({ hasText: "sandbox.create" }).filter({ hasText: "person" }),
    ]);
    const { records } = await lab.server.client.call("verifyAudit", {});
    await page.getByRole("button", { name: "Verify again" }).click();
    await page.getByText(new RegExp(`^The chain of (${records}|${records + 1}|${records + 2}) records`)).waitFor();
    expect(troubles).toEqual([]);
  });

  test("processes and commands of a sandbox are told apart: what runs, and how others ended", async () => {
    const { page, troubles } = await says("/sandbox/seen?show=commands", "sandbox-commands", (at) => [
      row(at, "Processes", "sleep 4321", "sleeping"),
      row(at, "Commands", "echo told; exit 3", "exit 3"),
    ]);
    const { processes } = await lab.server.client.call("listProcesses", { sandbox: "seen" });
    await lab.server.sh("seen", `kill ${processes[0]?.pid}`);
    await page.getByText("Nothing runs inside now.").waitFor();
    expect(troubles).toEqual([]);
  });

  test("the network of a sandbox shows requests with verdict and bytes, and what they could change outside", async () => {
    const { troubles } = await says("/sandbox/seen?show=network", "sandbox-network", (at) => [
      row(at, "Last requests", `shop.test:${port}`, "allowed", /POST \/orders/, /[23]\.\d KiB/),
      row(at, "Last requests", "closed.test:80", "denied"),
      row(at, "Requests that can change something outside", `POST http://shop.test:${port}/orders`, "201"),
    ]);
    expect(troubles).toEqual([]);
  });

  test("the audit of a sandbox tells its own story alone", async () => {
    const { page, troubles } = await says("/sandbox/seen?show=audit", "sandbox-audit", ({ page: at }) => [
      at.getByRole("row").filter({ hasText: "exec" }).filter({ hasText: "exit 3" }),
    ]);
    expect(await page.getByRole("row").filter({ hasText: "secret.set" }).count()).toBe(0);
    expect(troubles).toEqual([]);
  });

  test("the machine shows its use from before the page was opened", async () => {
    const { samples } = await eventually(
      () => lab.server.client.call("machineHistory", {}),
      (answer) => answer.samples.length > 0,
    );
    const { page, troubles } = await says("/machine", "machine-overview", ({ page: at }) => [
      at.getByText(/^from .* until now$/),
      at.getByRole("img", { name: /^Memory of the machine: .* of/ }),
      at.getByRole("img", { name: /^Sandboxes that run: [1-9]\d* of/ }),
    ]);
    expect(
      await page
        .getByText(/^from .* until now$/)
        .locator("time")
        .getAttribute("datetime"),
    ).toBe(samples[0]?.at);
    expect(troubles).toEqual([]);
  });

  test("settings name the browsers that are logged in; events, doctor and policy say what there is", async () => {
    const settings = await says("/machine?show=settings", "machine-settings", ({ page: at }) => [
      at
        .getByRole("listitem")
        .filter({ hasText: /Chrome \d+ on Linux/ })
        .filter({ hasText: "this one" }),
      at.getByText("may answer questions"),
    ]);
    const events = await says("/machine?show=events", "machine-events", ({ page: at }) => [at.getByText("sandbox.running")]);
    const doctor = await says("/machine?show=doctor", "machine-doctor", ({ page: at }) => [
      at.getByText("good").first(),
      at.getByText(/cgroup/i),
    ]);
    const policy = await says("/machine?show=policy", "machine-policy", ({ page: at }) => [at.getByRole("button", { name: "Explain" })]);
    expect([settings, events, doctor, policy].flatMap(({ troubles }) => troubles)).toEqual([]);
  });
});
