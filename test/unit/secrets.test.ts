/** NET-4: secrets are sealed at rest, bound to where they may go, and never shown. */
import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Audit } from "../../src/audit/audit.ts";
import type { SecretBinding } from "../../src/schema/secret.ts";
import { SecretInterceptor } from "../../src/secrets/interceptor.ts";
import { Sealing } from "../../src/secrets/sealing.ts";
import { isBound, Secrets } from "../../src/secrets/secrets.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite.ts";
import type { Store } from "../../src/store/store.ts";

const CANARY = "sk-canary-5b1f0a77c2";
const BINDING: SecretBinding = { hosts: ["api.example.com"], methods: [], path: null, header: null };
const THERE = { host: "api.example.com", method: "POST", path: "/v1/messages" };

let place: string;
let store: Store;
let secrets: Secrets;

async function open(): Promise<void> {
  store = await openSqliteStore(join(place, "vivarium.db"));
  const audit = new Audit(store, join(place, "anchor"), () => undefined);
  secrets = await Secrets.open(store, audit, new Sealing(join(place, "secrets-key")));
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
    const [row] = await store.secrets();
    if (row === undefined) throw new Error("no row");
    await store.change((change) => change.putSecret({ ...row, hosts: ["evil.example.com"] }));
    await store.close();
    await open();
    expect(() => secrets.valueFor("key", { ...THERE, host: "evil.example.com" })).toThrow(
      expect.objectContaining({ code: "secret_unreadable" }),
    );
  });

  test("SC-13: replaced or removed counts at once, and the placeholder stays", async () => {
    const { placeholder } = await secrets.set("key", CANARY, BINDING);
    expect(placeholder).toMatch(/^viv-secret-[\w-]{24}$/);
    expect((await secrets.set("key", "another", BINDING)).placeholder).toBe(placeholder);
    expect(secrets.valueFor("key", THERE)).toBe("another");
    await secrets.remove("key");
    expect(() => secrets.valueFor("key", THERE)).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(await store.secrets()).toEqual([]);
    await expect(secrets.remove("key")).rejects.toMatchObject({ code: "not_found" });
  });

  test("SC-02: goes nowhere but to its hosts, methods and paths", () => {
    const bound = (binding: Partial<SecretBinding>, to: Partial<typeof THERE>): boolean =>
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
});

describe("the authority of this install", () => {
  const file = (): string => join(place, "interception-ca.json");
  const certOf = (interceptor: SecretInterceptor): string => Object.values(interceptor.files({}))[0] ?? "";
  afterEach(() => void vi.useRealTimers());

  test("SC-12: is made at first use, readable by its owner alone, and the same after a restart", async () => {
    const interceptor = new SecretInterceptor(secrets, place);
    expect([interceptor.files({}), interceptor.trust()]).toEqual([{}, {}]);
    expect(existsSync(file())).toBe(false);
    await secrets.set("key", CANARY, BINDING);
    const cert = certOf(interceptor);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(certOf(new SecretInterceptor(secrets, place))).toBe(cert);
    expect(JSON.stringify(interceptor.files({}))).not.toContain("PRIVATE KEY");
    expect(Object.values(interceptor.trust())).not.toContain(undefined);
    chmodSync(file(), 0o644);
    expect(() => certOf(new SecretInterceptor(secrets, place))).toThrow(expect.objectContaining({ code: "secret_unreadable" }));
  });

  test("SC-12: is made anew when a crash left half of it, and before it ends; leaves are renewed long before they do", async () => {
    await secrets.set("key", CANARY, BINDING);
    const interceptor = new SecretInterceptor(secrets, place);
    const first = certOf(interceptor);
    const leaf = interceptor.credentials("api.example.com");
    expect(interceptor.credentials("api.example.com")).toBe(leaf);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 8 * 24 * 3_600_000 });
    expect(interceptor.credentials("api.example.com")).not.toBe(leaf);
    vi.setSystemTime(Date.now() + 3_600 * 24 * 3_600_000);
    const second = certOf(interceptor);
    expect(second).not.toBe(first);
    expect(new X509Certificate(interceptor.credentials("api.example.com").cert).verify(new X509Certificate(second).publicKey)).toBe(true);
    writeFileSync(file(), '{"key":"-----BEG');
    expect(certOf(new SecretInterceptor(secrets, place))).not.toBe(second);
  });

  test("certificates of other lists are taken along, and nothing else from them", async () => {
    await secrets.set("key", CANARY, BINDING);
    const interceptor = new SecretInterceptor(secrets, place);
    const list = join(place, "list.pem");
    writeFileSync(
      list,
      `${CANARY}\n-----BEGIN CERTIFICATE-----\nb3du\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n${CANARY}\n`,
    );
    const bundle = Object.values(interceptor.files({ SSL_CERT_FILE: list, CURL_CA_BUNDLE: "/nowhere", PIP_CERT: place }))[1] ?? "";
    expect(bundle).toContain("\nb3du\n");
    expect(bundle).not.toContain(CANARY);
    expect(bundle.endsWith(certOf(interceptor))).toBe(true);
  });
});
