/**
 * What the proxy needs to put secrets into requests over TLS: an authority of this install, trusted inside sandboxes alone, and the
 * secrets in place of their placeholders. Hosts without a secret are never opened.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { closeSync, existsSync, fsyncSync, lstatSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Filled, InterceptedRequest, Interceptor } from "../network/interception.ts";
import { VivError } from "../schema/errors.ts";
import { makeAuthority, makeLeaf, type Certified } from "./certificates.ts";
import type { Secrets } from "./secrets.ts";

/** Where programs inside find the authority; not in a volume, so in no diff and no snapshot. */
export const AUTHORITY_FILE = "/run/vivarium-ca.pem";
/** The same with those of the machine, for programs that take one list. */
export const BUNDLE_FILE = "/run/vivarium-ca-bundle.pem";
const AUTHORITY_KEY = "interception-ca.json";
const SYSTEM_BUNDLES = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
const DAY_MS = 24 * 3_600_000;
const LEAF_MS = 7 * DAY_MS;
const MOST_LEAVES = 256;
/** An authority is replaced while sandboxes that know it can still finish. */
const RENEW_MS = 90 * DAY_MS;

export class SecretInterceptor implements Interceptor {
  readonly #secrets: Secrets;
  readonly #folder: string;
  #authority: Certified | undefined;
  readonly #leaves = new Map<string, Certified & { readonly until: number }>();

  constructor(secrets: Secrets, folder: string) {
    this.#secrets = secrets;
    this.#folder = folder;
  }

  wants(host: string): boolean {
    return this.#secrets.isInjected(host);
  }

  credentials(host: string): Certified {
    const known = this.#leaves.get(host);
    if (known !== undefined && known.until > Date.now()) return known;
    const leaf = { ...makeLeaf(this.#own(), host), until: Date.now() + LEAF_MS };
    // A pattern stands for more names than anybody needs at once.
    const [oldest] = this.#leaves.keys();
    if (oldest !== undefined && this.#leaves.size >= MOST_LEAVES) this.#leaves.delete(oldest);
    this.#leaves.set(host, leaf);
    return leaf;
  }

  fill(request: InterceptedRequest, headers: readonly string[]): Filled {
    return this.#secrets.fill(request, headers);
  }

  /** Variables of programs inside, where any secret is put into requests. */
  environment(): Record<string, string> {
    const placeholders = this.#secrets.placeholders();
    if (Object.keys(placeholders).length === 0) return {};
    const bundle = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO"];
    const names = Object.entries(placeholders).map(([name, placeholder]) => [
      `VIV_SECRET_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`,
      placeholder,
    ]);
    return {
      ...Object.fromEntries(names),
      ...Object.fromEntries(bundle.map((name) => [name, BUNDLE_FILE])),
      NODE_EXTRA_CA_CERTS: AUTHORITY_FILE,
    };
  }

  /** Files that these variables name, by path; none where there are none. */
  files(): Record<string, string> {
    if (Object.keys(this.#secrets.placeholders()).length === 0) return {};
    const { cert } = this.#own();
    const system = SYSTEM_BUNDLES.find((path) => existsSync(path));
    return { [AUTHORITY_FILE]: cert, [BUNDLE_FILE]: `${system === undefined ? "" : readFileSync(system, "utf8")}\n${cert}` };
  }

  /** Key and certificate in one file, so that they are there together or not at all. */
  #own(): Certified {
    if (this.#authority === undefined || ends(this.#authority) - Date.now() < RENEW_MS) this.#authority = this.#kept() ?? this.#make();
    return this.#authority;
  }

  #kept(): Certified | undefined {
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

  #make(): Certified {
    const made = makeAuthority();
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

function ends({ cert }: Certified): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

/** Undefined for what is no authority: one that a crash left half is made anew. */
function readCertified(text: string): Certified | undefined {
  try {
    const { key, cert } = JSON.parse(text) as Partial<Certified>;
    if (key === undefined || cert === undefined || !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return undefined;
    return { key, cert };
  } catch {
    return undefined;
  }
}
