/** NET-4: secrets are sealed at rest, bound to where they may go, and never shown. */
import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DatabaseSync } from "node:sqlite";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { Approval } from "../../src/base/schema/approval.ts";
import { SecretBinding, type Secret } from "../../src/base/schema/secret.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { isBound, Secrets, type Destination } from "../../src/rules/secrets/secrets.ts";
import { MIGRATIONS } from "../../src/base/store/migrations.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";

const CANARY = "sk-canary-5b1f0a77c2";
const BINDING: SecretBinding = { hosts: ["api.example.com"], methods: [], path: null, header: null };
const THERE = { protocol: "https", host: "api.example.com", port: 443, method: "POST", path: "/v1/messages" } as const;

let place: string;
let store: Store;
let secrets: Secrets;

async function open(): Promise<void> {
  store = await openSqliteStore(join(place, "vivarium.db"));
  const audit = new Audit(store, join(place, "anchor"), () => undefined);
  secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")));
}

beforeEach(async () => {
  place = mkdtempSync(join(tmpdir(), "viv-secrets-"));
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(place, { recursive: true, force: true });
});

describe("a secret", () => {
  test("SC-10: lies in no file in the clear, under a key that only its owner reads", async () => {
    await secrets.set("key", CANARY, BINDING);
    const files = readdirSync(place);
    expect(files).toContain("secrets-key");
    expect(statSync(join(place, "secrets-key")).mode & 0o777).toBe(0o600);
    const holders = (canary: string): string[] => readdirSync(place).filter((name) => readFileSync(join(place, name)).includes(canary));
    expect(holders(CANARY)).toEqual([]);
    // The same look finds what does lie there.
    expect(holders("api.example.com")).not.toEqual([]);
    expect(JSON.stringify(secrets.list())).not.toContain(CANARY);
  });

  test("is there after a restart, and only with its key", async () => {
    await secrets.set("key", CANARY, BINDING);
    await store.close();
    await open();
    expect(secrets.valueFor("key", THERE)).toBe(CANARY);
    await store.close();
    writeFileSync(join(place, "secrets-key"), `${"0".repeat(64)}\n`);
    await open();
    expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "secret_unreadable" }));
  });

  test("is not opened with a key that others can read", async () => {
    await secrets.set("key", CANARY, BINDING);
    chmodSync(join(place, "secrets-key"), 0o644);
    await store.close();
    await open();
    expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "secret_unreadable" }));
  });

  test("does not open for a row whose binding was edited in the database", async () => {
    await secrets.set("key", CANARY, BINDING);
    const [row] = await store.secrets.list();
    if (row === undefined) throw new Error("no row");
    await store.change((change) => change.secrets.put({ ...row, hosts: ["evil.example.com"] }));
    await store.close();
    await open();
    expect(() => secrets.valueFor("key", { ...THERE, host: "evil.example.com" })).toThrow(
      expect.objectContaining({ code: "secret_unreadable" }),
    );
  });

  test("SC-13: is a key unless it was kept as a subscription's token, and does not open if that was edited in the database", async () => {
    expect(await secrets.set("key", CANARY, { ...BINDING, kind: "subscription" }, null)).toMatchObject({ kind: "subscription" });
    const [row] = await store.secrets.list();
    if (row === undefined) throw new Error("no row");
    await store.change((change) => change.secrets.put({ ...row, kind: "key" }));
    await store.close();
    await open();
    expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "secret_unreadable" }));
    expect(await secrets.set("key", CANARY, BINDING, null)).toMatchObject({ kind: "key" });
  });

  test("SC-13: replaced or removed counts at once, and the placeholder stays", async () => {
    const { placeholder } = await secrets.set("key", CANARY, BINDING);
    expect(placeholder).toMatch(/^viv-secret-[\w-]{24}$/);
    expect((await secrets.set("key", "another", BINDING)).placeholder).toBe(placeholder);
    expect(secrets.valueFor("key", THERE)).toBe("another");
    await secrets.remove("key");
    expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(await store.secrets.list()).toEqual([]);
    await expect(secrets.remove("key")).rejects.toMatchObject({ code: "not_found" });
  });

  test("SC-02: goes nowhere but to its hosts, methods and paths", () => {
    const bound = (binding: Partial<SecretBinding>, to: Partial<Destination>): boolean =>
      isBound({ ...BINDING, ...binding }, { ...THERE, ...to });
    expect(bound({}, {})).toBe(true);
    expect(bound({}, { host: "api.example.com.evil.test" })).toBe(false);
    expect(bound({ hosts: ["*.example.com"] }, {})).toBe(true);
    expect(bound({ hosts: ["*.example.com"] }, { host: "example.com" })).toBe(false);
    expect(bound({ methods: ["GET"] }, {})).toBe(false);
    expect(bound({ path: "/v1" }, {})).toBe(true);
    expect(bound({ path: "/v1" }, { path: "/v10/messages" })).toBe(false);
    expect(bound({ path: "/v1" }, { path: "/v1/../admin" })).toBe(false);
    expect(bound({ path: "/v1" }, { path: "/v1/%2E%2e/admin" })).toBe(false);
    expect(bound({ path: "/v1" }, { path: "/v1/..%2fadmin" })).toBe(false);
  });

  test("SC-02: goes to the usual port of its host, or to the one that is named", () => {
    const bound = (host: string, to: Partial<Destination>): boolean => isBound({ ...BINDING, hosts: [host] }, { ...THERE, ...to });
    expect([bound("api.example.com", { port: 8443 }), bound("api.example.com:8443", { port: 8443 })]).toEqual([false, true]);
    expect([bound("api.example.com:8443", {}), bound("api.example.com:443", {})]).toEqual([false, true]);
    expect(bound("*.example.com:8443", { port: 8443 })).toBe(true);
    expect([bound("::1", { host: "::1" }), bound("[::1]:8443", { host: "::1", port: 8443 })]).toEqual([true, true]);
    expect([bound("127.0.0.1", { protocol: "http", host: "127.0.0.1", port: 80 }), bound("127.0.0.1", { protocol: "http", host: "127.0.0.1" })]).toEqual([true, false]); // prettier-ignore
    expect([bound("FD00:0::1".toLowerCase(), { host: "fd00::1" }), bound("[fd00:0::01]:8443", { host: "fd00::1", port: 8443 })]).toEqual([true, true]); // prettier-ignore
    const spelled = SecretBinding.parse({ hosts: ["fd00:0:0::01", "[fd00:0::1]:8443", "[fd00:0::2]", "a.test:1"] });
    expect(spelled.hosts).toEqual(["fd00::1", "[fd00::1]:8443", "fd00::2", "a.test:1"]);
    const hosts = (text: string): boolean => SecretBinding.safeParse({ hosts: [text] }).success;
    expect(["a.test", "*.a.test:1", "::1", "[::1]:65535", "1.2.3.4:80"].map(hosts)).toEqual([true, true, true, true, true]);
    expect(["a.test:", "a.test:0", "a.test:080", "a.test:65536", "a.test:1:2", "a.test:*", "[a.test"].map(hosts)).toEqual(
      Array(7).fill(false),
    );
  });
});

describe("the authority of this install", () => {
  const file = (): string => join(place, "interception-ca.json");
  const certOf = async (interceptor: SecretInterceptor): Promise<string> => Object.values(await interceptor.files({}))[0] ?? "";
  afterEach(() => void vi.useRealTimers());

  test("SC-12: is made at first use, readable by its owner alone, and the same after a restart", async () => {
    const interceptor = new SecretInterceptor(secrets, place);
    expect([await interceptor.files({}), interceptor.trust()]).toEqual([{}, {}]);
    expect(existsSync(file())).toBe(false);
    await secrets.set("key", CANARY, BINDING);
    const cert = await certOf(interceptor);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(await certOf(new SecretInterceptor(secrets, place))).toBe(cert);
    expect(JSON.stringify(await interceptor.files({}))).not.toContain("PRIVATE KEY");
    expect(Object.values(interceptor.trust())).not.toContain(undefined);
    chmodSync(file(), 0o644);
    await expect(certOf(new SecretInterceptor(secrets, place))).rejects.toThrow(expect.objectContaining({ code: "secret_unreadable" }));
  });

  test("SC-12: is made anew when a crash left half of it, and before it ends; leaves are renewed long before they do", async () => {
    await secrets.set("key", CANARY, BINDING);
    const interceptor = new SecretInterceptor(secrets, place);
    const first = await certOf(interceptor);
    const leaf = await interceptor.credentials("api.example.com");
    expect(await interceptor.credentials("api.example.com")).toBe(leaf);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 8 * 24 * 3_600_000 });
    expect(await interceptor.credentials("api.example.com")).not.toBe(leaf);
    vi.setSystemTime(Date.now() + 3_600 * 24 * 3_600_000);
    const second = await certOf(interceptor);
    expect(second).not.toBe(first);
    const { cert } = await interceptor.credentials("api.example.com");
    expect(new X509Certificate(cert).verify(new X509Certificate(second).publicKey)).toBe(true);
    writeFileSync(file(), '{"key":"-----BEG');
    expect(await certOf(new SecretInterceptor(secrets, place))).not.toBe(second);
  });

  test("certificates of other lists are taken along, and nothing else from them", async () => {
    await secrets.set("key", CANARY, BINDING);
    const interceptor = new SecretInterceptor(secrets, place);
    const list = join(place, "list.pem");
    writeFileSync(
      list,
      `${CANARY}\n-----BEGIN CERTIFICATE-----\nb3du\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n${CANARY}\n`,
    );
    const bundle = Object.values(await interceptor.files({ SSL_CERT_FILE: list, CURL_CA_BUNDLE: "/nowhere", PIP_CERT: place }))[1] ?? "";
    expect(bundle).toContain("\nb3du\n");
    expect(bundle).not.toContain(CANARY);
    expect(bundle.endsWith(await certOf(interceptor))).toBe(true);
  });
});

describe("the projects of a secret", () => {
  const bearer = (placeholder: string): string[] => ["Authorization", `Bearer ${placeholder}`];
  const still = new AbortController().signal;
  let approvals: Approvals;

  beforeEach(async () => {
    const audit = new Audit(store, join(place, "anchor"), () => undefined);
    approvals = new Approvals(store, audit, join(place, "token"));
    secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")), { approvals, holdMs: 20_000 });
    for (const [id, project] of [
      ["in-a", "/srv/a"],
      ["also-in-a", "/srv/a"],
      ["in-b", "/srv/b"],
    ] as const)
      // prettier-ignore
      await store.change((change) => change.sandboxes.put(aSandboxRow({ id, name: id, project, idempotencyKey: null })));
  });

  const use = (sandbox: string, { placeholder }: Secret) => secrets.permit(sandbox, THERE, bearer(placeholder), still);
  async function answer(given: "once" | "always" | "deny"): Promise<Approval> {
    const [asked] = await eventually(
      () => approvals.list(false),
      (waiting) => waiting.length > 0,
    );
    return approvals.answer(asked?.id ?? "", given, readFileSync(join(place, "token"), "utf8").trim());
  }

  test("SC-14: use it without a question; another one has a person asked, and a yes is for that sandbox", async () => {
    const key = await secrets.set("key", CANARY, BINDING, ["/srv/a"]);
    expect([await use("in-a", key), await secrets.permit("in-b", THERE, ["Authorization", "none"], still)]).toEqual([undefined, undefined]);
    const both = Promise.all([use("in-b", key), use("in-b", key)]);
    const asked = await answer("once");
    expect(asked).toMatchObject({ kind: "secret", project: "/srv/b", target: "key, which goes to api.example.com" });
    expect(await both).toEqual([undefined, undefined]);
    expect(await use("in-b", key)).toBeUndefined();
    expect(await approvals.list(false)).toEqual([]);
  });

  test("SC-14: are none of a new secret; always is for the project, and for this secret alone", async () => {
    const key = await secrets.set("key", CANARY, BINDING);
    expect(key.projects).toEqual([]);
    const first = use("in-a", key);
    await answer("always");
    expect([await first, await use("also-in-a", key)]).toEqual([undefined, undefined]);
    const other = use("in-b", key);
    await answer("deny");
    expect(await other).toMatchObject({ code: "secret_denied" });
    // Another one that gets its name.
    await secrets.remove("key");
    const another = await secrets.set("key", CANARY, BINDING);
    const again = use("also-in-a", another);
    await answer("deny");
    expect(await again).toMatchObject({ code: "secret_denied" });
  });

  test("SC-14: a model's key is asked about, too", async () => {
    await secrets.set("key", CANARY, BINDING, ["/srv/a"]);
    expect(await secrets.permitNamed("in-a", "key", still)).toBeUndefined();
    const other = secrets.permitNamed("in-b", "key", still);
    await answer("deny");
    expect(await other).toMatchObject({ code: "secret_denied" });
  });

  test("SC-14: stay when the value is replaced, and can't be widened in the database", async () => {
    await secrets.set("key", CANARY, BINDING, ["/srv/a"]);
    expect((await secrets.set("key", "another", BINDING)).projects).toEqual(["/srv/a"]);
    await secrets.set("wide", CANARY, BINDING, null);
    expect((await secrets.set("wide", "another", BINDING)).projects).toBe(null);
    const row = (await store.secrets.list()).find(({ name }) => name === "key");
    if (row === undefined) throw new Error("no row");
    for (const projects of [null, ["/srv/a", "/srv/b"]]) {
      await store.change((change) => change.secrets.put({ ...row, projects }));
      await store.close();
      await open();
      expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "secret_unreadable" }));
    }
  });

  test("SC-14: of a secret of an earlier version are none, and its value opens as before", async () => {
    await secrets.set("key", CANARY, BINDING);
    const row = await store.secrets.get("key");
    await store.close();
    const path = join(place, "vivarium.db");
    rmSync(path);
    const earlier = MIGRATIONS.slice(
      0,
      MIGRATIONS.findIndex(({ name }) => name === "projectsOfSecrets"),
    );
    await (await openSqliteStore(path, earlier)).close();
    const database = new DatabaseSync(path);
    database.prepare("insert into secrets values ('key', ?)").run(JSON.stringify({ ...row, projects: undefined, kind: undefined }));
    database.close();
    await open();
    expect(secrets.list()).toMatchObject([{ name: "key", kind: "key", projects: [] }]);
    expect(secrets.valueFor("key", THERE)).toBe(CANARY);
  });
});
