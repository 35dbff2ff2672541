/** Who gets into the dashboard, and who does not. Each attack has a control beside it that does get in. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { CONTRACTS } from "../../src/base/schema/contracts.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { PAGES } from "../../src/base/schema/routes.ts";
import { STREAM_ROUTES } from "../../src/base/schema/stream-routes.ts";
import { Sessions } from "../../src/rules/sessions/sessions.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";

let api: ApiServer;
let own: string;
let cookieName: string;

beforeAll(async () => {
  api = await startApi();
  own = `http://127.0.0.1:${api.port}`;
  cookieName = `viv-session-${api.port}`;
});

afterAll(() => api.close());

beforeEach(async () => {
  api.clock.aheadMs = 0;
  api.engine.calls.length = 0;
  for (const { id } of api.sessions.list()) await api.sessions.end(id);
});

type Headers = Readonly<Record<string, string | undefined>>;

/** As a browser sends it from a page of the dashboard, unless changed. */
function browser(line: string, changes: Headers = {}, body = ""): Promise<RawAnswer> {
  const headers: Headers = { host: `127.0.0.1:${api.port}`, origin: own, "sec-fetch-site": "same-origin", ...changes };
  const present = Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));
  return rawRequest({ host: "127.0.0.1", port: api.port }, request(line, present, body));
}

const json = { "content-type": "application/json" };
const codeOf = (answer: RawAnswer): string => (JSON.parse(answer.body) as { error: { code: string } }).error.code;

async function login(mayAnswer = false): Promise<{ cookie: string; "viv-key": string; id: string }> {
  const { secret } = await api.sessions.link(api.port, mayAnswer);
  const answer = await browser("POST /dashboard/login", json, JSON.stringify({ link: secret }));
  expect(answer.status).toBe(200);
  const cookie = /set-cookie: ([^;\r]+)/i.exec(answer.head)?.[1] ?? "";
  const { key, session } = JSON.parse(answer.body) as { key: string; session: { id: string } };
  return { cookie, "viv-key": key, id: session.id };
}

describe("a link to the dashboard (WEB-1, AP-17)", () => {
  it("logs a browser in with a cookie that scripts and other sites do not get", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    const answer = await browser("POST /dashboard/login", json, JSON.stringify({ link: secret }));
    expect(answer.status).toBe(200);
    expect(answer.head).toMatch(new RegExp(`set-cookie: ${cookieName}=[\\da-f]{64}; HttpOnly; SameSite=Strict; Path=/; Max-Age=\\d+`, "i"));
    expect(answer.body).not.toContain(/=([\da-f]{64});/.exec(answer.head)?.[1]);
  });

  it("works once, also when two browsers use it in the same moment", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    const use = (): Promise<RawAnswer> => browser("POST /dashboard/login", json, JSON.stringify({ link: secret }));
    const answers = await Promise.all([use(), use(), use()]);
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 401, 401]);
    expect((await use()).status).toBe(401);
  });

  it("ends after minutes", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    api.clock.aheadMs = LIMITS.linkMs + 1;
    expect((await browser("POST /dashboard/login", json, JSON.stringify({ link: secret }))).status).toBe(401);
    api.clock.aheadMs = LIMITS.linkMs - 1000;
    expect((await browser("POST /dashboard/login", json, JSON.stringify({ link: secret }))).status).toBe(200);
  });

  it("is no use to a page of another origin, which may have seen it", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    for (const origin of ["http://evil.example", "null", `http://127.0.0.1:${api.port + 1}`])
      expect((await browser("POST /dashboard/login", { ...json, origin }, JSON.stringify({ link: secret }))).status).toBe(403);
    expect((await browser("POST /dashboard/login", json, JSON.stringify({ link: secret }))).status).toBe(200);
  });

  it("can't be guessed by trying: after some failures no link is looked at for a while", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    const guess = (link: string): Promise<RawAnswer> => browser("POST /dashboard/login", json, JSON.stringify({ link }));
    const answers = [];
    for (let index = 0; index <= LIMITS.failedLogins; index += 1) answers.push((await guess(`guess-${index}`)).status);
    expect(answers.at(0)).toBe(401);
    expect(answers.at(-1)).toBe(429);
    expect((await guess(secret)).status).toBe(429);
    api.clock.aheadMs = LIMITS.failedLoginsMs + 1;
    expect((await guess(secret)).status).toBe(200);
  });

  it("and its session are in the database as hashes alone", async () => {
    const { secret } = await api.sessions.link(api.port, false);
    const opened = await login();
    const rows = JSON.stringify(await api.store.sessions.list());
    for (const text of [secret, opened["viv-key"], opened.cookie.split("=")[1]]) expect(rows).not.toContain(text);
    expect(rows).toContain(opened.id);
  });
});

describe("a browser's session (AP-18)", () => {
  it("opens the API with cookie and key together", async () => {
    const { id: _, ...both } = await login();
    expect((await browser("GET /sandboxes", both)).status).toBe(200);
    expect((await browser("POST /prune", { ...both, ...json }, "{}")).status).toBe(200);
  });

  it.each([
    ["the cookie alone, as a server on another port of this address gets it", { "viv-key": undefined }],
    ["the key alone", { cookie: undefined }],
    ["the cookie with a wrong key", { "viv-key": "a".repeat(64) }],
    ["the cookie under the name of another port", { cookie: "viv-session-1=" }],
  ])("does not open it with %s", async (_, change: Headers) => {
    const { id: __, ...both } = await login();
    const answer = await browser("GET /sandboxes", { ...both, ...change });
    expect(answer.status).toBe(401);
    expect(codeOf(answer)).toBe("unauthorized");
    expect(api.engine.calls).toEqual([]);
  });

  it("does not mix the cookie of one browser with the key of another", async () => {
    const [one, other] = [await login(), await login()];
    expect((await browser("GET /sandboxes", { cookie: one.cookie, "viv-key": other["viv-key"] })).status).toBe(401);
    expect((await browser("GET /sandboxes", { cookie: one.cookie, "viv-key": one["viv-key"] })).status).toBe(200);
  });

  it.each([
    ["a page of another site", { origin: "http://evil.example", "sec-fetch-site": "cross-site" }],
    ["a page of another port of this machine", { origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" }],
    ["a frame without an origin", { origin: "null" }],
    ["a name that was bound to 127.0.0.1", { host: "evil.example:80", origin: "http://evil.example:80" }],
    ["no origin at all", { origin: undefined, "sec-fetch-site": undefined }],
  ])("is refused a change from %s", async (_, change: Headers) => {
    const { id: __, ...both } = await login();
    expect((await browser("POST /prune", { ...both, ...json, ...change }, "{}")).status).toBe(403);
    expect(api.engine.calls).toEqual([]);
    expect((await browser("POST /prune", { ...both, ...json }, "{}")).status).toBe(200);
  });

  it("opens a WebSocket from the own origin alone", async () => {
    const { cookie, "viv-key": key } = await login();
    const outcome = (options: { origin?: string; headers?: Record<string, string> }, protocols: string[]): Promise<string> =>
      new Promise((resolve) => {
        const socket = new WebSocket(`ws://127.0.0.1:${api.port}/sandboxes/one/exec`, protocols, options);
        socket.once("open", () => (resolve("open"), socket.terminate()));
        socket.once("unexpected-response", (__, answer) => (resolve(String(answer.statusCode)), socket.terminate()));
        socket.once("error", () => resolve("error"));
      });
    const protocols = ["viv", `viv.key.${key}`];
    expect(await outcome({ origin: own, headers: { cookie } }, protocols)).toBe("open");
    expect(await outcome({ origin: "http://evil.example", headers: { cookie } }, protocols)).toBe("403");
    expect(await outcome({ origin: "http://127.0.0.1:1", headers: { cookie } }, protocols)).toBe("403");
    expect(await outcome({ headers: { cookie } }, protocols)).toBe("403");
    expect(await outcome({ origin: own, headers: { cookie } }, ["viv"])).toBe("401");
    expect(await outcome({ origin: own }, protocols)).toBe("401");
  });

  it("ends with its open connections when it is ended, and others stay", async () => {
    const [one, other] = [await login(), await login()];
    const listenTo = (who: typeof one): Promise<Response> =>
      fetch(`${own}/events?after=0`, { headers: { cookie: who.cookie, "viv-key": who["viv-key"], origin: own } });
    const [cut, kept] = [await listenTo(one), await listenTo(other)];
    await api.sessions.end(one.id);
    await expect(cut.text()).rejects.toThrow();
    expect((await browser("GET /sandboxes", { cookie: one.cookie, "viv-key": one["viv-key"] })).status).toBe(401);
    expect((await browser("GET /sandboxes", { cookie: other.cookie, "viv-key": other["viv-key"] })).status).toBe(200);
    await kept.body?.cancel();
  });

  it("ends by itself, and lives on in a server that starts anew", async () => {
    const { id: _, ...both } = await login();
    const [cookie = "", key] = [both.cookie.split("=")[1], both["viv-key"]];
    const audit = new Audit(api.store, "/dev/null/none", () => undefined);
    const again = await Sessions.open(api.store, audit);
    expect(again.check(cookie, key)).toBeDefined();
    expect(again.port).toBe(api.port);
    api.clock.aheadMs = LIMITS.sessionMs + 1;
    expect((await browser("GET /sandboxes", both)).status).toBe(401);
  });

  it("speaks for a person only if its link was made by one", async () => {
    const [person, program] = [await login(true), await login(false)];
    expect(api.sessions.isPerson(person["viv-key"])).toBe(true);
    expect(api.sessions.isPerson(program["viv-key"])).toBe(false);
    expect(api.sessions.isPerson(TOKEN)).toBe(false);
    await api.sessions.end(person.id);
    expect(api.sessions.isPerson(person["viv-key"])).toBe(false);
  });
});

describe("the pages", () => {
  it("need no login, run no script of others and show in no frame", async () => {
    for (const path of ["/", "/work", "/question/apv1"]) {
      const { status, head } = await browser(`GET ${path}`, { origin: undefined });
      expect(status).toBe(200);
      const policy = /content-security-policy: (.*)/i.exec(head)?.[1] ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("connect-src 'self'");
      const previews = `frame-src http://*.localhost:${api.port}`;
      expect(policy).toContain(previews);
      expect(policy.replace(previews, "")).not.toMatch(/script-src[^;]*unsafe|https?:|\*/);
    }
  });

  it("open from a link in another site, which gets nothing else", async () => {
    const visit = { origin: undefined, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect((await browser("GET /question/apv1", visit)).status).toBe(200);
    expect((await browser("GET /question/apv1", { ...visit, "sec-fetch-dest": "iframe" })).status).toBe(403);
    expect((await browser("GET /sandboxes", visit)).status).toBe(403);
    expect((await browser("GET /work", { ...visit, host: "evil.example" })).status).toBe(403);
  });

  it("carry the hash of their content in the names of their parts, which are kept for good", async () => {
    const asset = await browser("GET /assets/main-abc.js", { "accept-encoding": "gzip, deflate, br" });
    expect(asset.head).toMatch(/cache-control: public, max-age=31536000, immutable/i);
    expect(asset.head).toMatch(/content-encoding: br/i);
    expect((await browser("GET /assets/main-abc.js", { "accept-encoding": "gzip" })).head).toMatch(/content-encoding: gzip/i);
    expect((await browser("GET /assets/main-abc.js")).body).toContain("export {};");
    expect((await browser("GET /")).head).toMatch(/cache-control: no-cache/i);
  });

  it.each(["/assets/../index.html", "/assets/%2e%2e/x", "/assets/none.js", "/assets/", "/assets/a/b.js", "/work/../sandboxes"])(
    "give nothing else of the machine at %s",
    async (path) => {
      expect([400, 401, 404]).toContain((await browser(`GET ${path}`)).status);
    },
  );

  it("have addresses that are none of the API's", () => {
    const taken = [...Object.values(CONTRACTS), ...Object.values(STREAM_ROUTES)].map(({ path }) => path.split("/")[1]);
    expect(PAGES.filter((page) => taken.includes(page))).toEqual([]);
    expect(taken).not.toContain("assets");
  });
});
