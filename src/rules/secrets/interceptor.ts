/**
 * What the proxy needs to put secrets into requests over TLS: an authority of this install, trusted inside sandboxes alone, and the
 * secrets in place of their placeholders. Hosts without a secret are never opened.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { closeSync, existsSync, fsyncSync, lstatSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { HeadersWithSecrets, InterceptedRequest, Interceptor } from "../network/interception.ts";
import type { Denied } from "../network/rules.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { IssuedCertificate } from "./certificates.ts";
import type { Secrets } from "./secrets.ts";

/** Where programs inside find the authority; not in a volume, so in no diff and no snapshot. */
const AUTHORITY_FILE = "/run/vivarium-ca.pem";
/** The same with those of the machine, for programs that take one list. */
const BUNDLE_FILE = "/run/vivarium-ca-bundle.pem";
const AUTHORITY_KEY = "interception-ca.json";
const SYSTEM_BUNDLES = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/** Variables of programs that take one list of authorities in place of the machine's. */
const ONE_LIST = [
  "SSL_CERT_FILE",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "PIP_CERT",
  "CARGO_HTTP_CAINFO",
  "AWS_CA_BUNDLE",
  "NIX_SSL_CERT_FILE",
  "DENO_CERT",
  // A list in npm's own settings would be the only one it goes by.
  "npm_config_cafile",
  "YARN_HTTPS_CA_FILE_PATH",
];
const MOST_LIST_BYTES = 4 * 1024 ** 2;
const DAY_MS = 24 * 3_600_000;
const LEAF_MS = 7 * DAY_MS;
const MOST_LEAVES = 256;
/** An authority is replaced while sandboxes that know it can still finish. */
const RENEW_MS = 90 * DAY_MS;

export class SecretInterceptor implements Interceptor {
  readonly #secrets: Secrets;
  readonly #folder: string;
  #authority: IssuedCertificate | undefined;
  readonly #leaves = new Map<string, IssuedCertificate & { readonly until: number }>();

  constructor(secrets: Secrets, folder: string) {
    this.#secrets = secrets;
    this.#folder = folder;
  }

  /** Loads what makes certificates: an upgrade in place removes the files that a running server has not loaded yet. */
  async preload(): Promise<void> {
    await certificates();
  }

  wants(host: string, port: number): boolean {
    return this.#secrets.isInjected({ protocol: "https", host, port });
  }

  async credentials(host: string): Promise<IssuedCertificate> {
    const known = this.#knownLeaf(host);
    if (known !== undefined) return known;
    const authority = await this.#own();
    const { makeLeaf } = await certificates();
    // Another call may have made it meanwhile.
    return this.#knownLeaf(host) ?? this.#keepLeaf(host, makeLeaf(authority, host));
  }

  permit(sandbox: string, request: InterceptedRequest, headers: readonly string[], signal: AbortSignal): Promise<Denied | undefined> {
    return this.#secrets.permit(sandbox, request, headers, signal);
  }

  fill(request: InterceptedRequest, headers: readonly string[]): HeadersWithSecrets {
    return this.#secrets.fill(request, headers);
  }

  record(sandbox: string, request: InterceptedRequest, used: readonly string[]): Promise<void> {
    return this.#secrets.recordUse({ id: sandbox, name: sandbox }, request, used);
  }

  /** Placeholders, by the variable that holds each. */
  placeholders(): Record<string, string> {
    const names = Object.entries(this.#secrets.placeholders()).map(([name, placeholder]) => [
      `VIV_SECRET_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`,
      placeholder,
    ]);
    return Object.fromEntries(names) as Record<string, string>;
  }

  /** Variables by which programs inside trust the authority; none where no secret is put into requests. */
  trust(): Record<string, string> {
    if (!this.#isUsed()) return {};
    return { ...Object.fromEntries(ONE_LIST.map((name) => [name, BUNDLE_FILE])), NODE_EXTRA_CA_CERTS: BUNDLE_FILE };
  }

  /** The files that these variables name, by path. Authorities that the sandbox's own variables name are in them, too. */
  async files(present: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    if (!this.#isUsed()) return {};
    const { cert } = await this.#own();
    const named = [...ONE_LIST, "NODE_EXTRA_CA_CERTS"].flatMap((name) => present[name] ?? []);
    const system = SYSTEM_BUNDLES.filter((path) => existsSync(path)).slice(0, 1);
    const lists = [...new Set([...system, ...named])].map(certificatesIn);
    return { [AUTHORITY_FILE]: cert, [BUNDLE_FILE]: [...lists, cert].join("\n") };
  }

  #isUsed(): boolean {
    return Object.keys(this.#secrets.placeholders()).length > 0;
  }

  /** Key and certificate in one file, so that they are there together or not at all. */
  async #own(): Promise<IssuedCertificate> {
    if (this.#authority === undefined || ends(this.#authority) - Date.now() < RENEW_MS) this.#authority = this.#kept();
    if (this.#authority !== undefined) return this.#authority;
    const { makeAuthority } = await certificates();
    // Another call may have made it meanwhile.
    this.#authority ??= this.#keep(makeAuthority());
    return this.#authority;
  }

  #knownLeaf(host: string): IssuedCertificate | undefined {
    const known = this.#leaves.get(host);
    return known !== undefined && known.until > Date.now() ? known : undefined;
  }

  #keepLeaf(host: string, leaf: IssuedCertificate): IssuedCertificate {
    // A pattern stands for more names than are in use at once.
    const [oldest] = this.#leaves.keys();
    if (oldest !== undefined && this.#leaves.size >= MOST_LEAVES) this.#leaves.delete(oldest);
    const kept = { ...leaf, until: Date.now() + LEAF_MS };
    this.#leaves.set(host, kept);
    return kept;
  }

  #kept(): IssuedCertificate | undefined {
    const path = join(this.#folder, AUTHORITY_KEY);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    if (!found.isFile() || (found.mode & 0o077) !== 0)
      throw new VivError("secret_unreadable", `${path} is not a file that only you can read.`, {
        remedy: "Remove it: a new authority is made, and sandboxes that run must be started anew.",
      });
    const kept = readCertified(readFileSync(path, "utf8"));
    return kept !== undefined && ends(kept) - Date.now() >= RENEW_MS ? kept : undefined;
  }

  #keep(made: IssuedCertificate): IssuedCertificate {
    const path = join(this.#folder, AUTHORITY_KEY);
    rmSync(`${path}.new`, { force: true });
    const file = openSync(`${path}.new`, "wx", 0o600);
    try {
      writeSync(file, JSON.stringify(made));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(`${path}.new`, path);
    this.#leaves.clear();
    return made;
  }
}

/** Loaded after the start of the server, or at first use: the server starts faster without it. */
function certificates(): Promise<typeof import("./certificates.ts")> {
  return import("./certificates.ts");
}

/** Nothing but certificates: whatever else a path leads to stays outside. */
function certificatesIn(path: string): string {
  try {
    if (!isAbsolute(path) || !statSync(path).isFile() || statSync(path).size > MOST_LIST_BYTES) return "";
    return (readFileSync(path, "latin1").match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? []).join("\n");
  } catch {
    // A list that does not exist names no authority.
    return "";
  }
}

function ends({ cert }: IssuedCertificate): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

/** Undefined for what is no authority: one that a crash left half is made anew. */
function readCertified(text: string): IssuedCertificate | undefined {
  try {
    const { key, cert } = JSON.parse(text) as Partial<IssuedCertificate>;
    if (key === undefined || cert === undefined || !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return undefined;
    return { key, cert };
  } catch {
    return undefined;
  }
}
