/**
 * What the proxy needs to put secrets into requests over TLS: an authority of this install, trusted inside sandboxes alone, and the
 * secrets in place of their placeholders. Hosts without a secret are never opened.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InterceptedRequest, Interceptor } from "../network/interception.ts";
import { makeAuthority, makeLeaf, type Certified } from "./certificates.ts";
import type { Secrets } from "./secrets.ts";

/** Where programs inside find the authority; not in a volume, so in no diff and no snapshot. */
export const AUTHORITY_FILE = "/run/vivarium-ca.pem";
/** The same with those of the machine, for programs that take one list. */
export const BUNDLE_FILE = "/run/vivarium-ca-bundle.pem";
const SYSTEM_BUNDLES = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
const LEAF_MS = 7 * 24 * 3_600_000;

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
    this.#leaves.set(host, leaf);
    return leaf;
  }

  fill(request: InterceptedRequest, name: string, value: string): string {
    return this.#secrets.fill(request, name, value);
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
    if (this.#authority !== undefined) return this.#authority;
    const path = join(this.#folder, "interception-ca.json");
    if (!existsSync(path)) {
      writeFileSync(`${path}.new`, JSON.stringify(makeAuthority()), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    }
    return (this.#authority = JSON.parse(readFileSync(path, "utf8")) as Certified);
  }
}
