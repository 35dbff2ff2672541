/** Certificates for TLS that is opened, against verifiers other than ours. */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeAuthority, makeLeaf, type IssuedCertificate } from "../../src/rules/secrets/certificates.ts";
import { needs } from "../support/skip.ts";

const HOST = "api.example.com";
let place: string;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "viv-certificates-"));
});

afterEach(() => {
  vi.useRealTimers();
  rmSync(place, { recursive: true });
});

function openssl(...words: string[]): string {
  return execFileSync("openssl", words, { cwd: place, encoding: "utf8", stdio: "pipe" });
}

/** What openssl says about a leaf, by the strictest rules it has, at a moment in seconds since 1970. */
function verdict(authority: IssuedCertificate, leaf: IssuedCertificate, at = Math.floor(Date.now() / 1000)): string {
  writeFileSync(join(place, "authority.pem"), authority.cert);
  writeFileSync(join(place, "leaf.pem"), leaf.cert);
  const rules = ["-x509_strict", "-purpose", "sslserver", "-verify_hostname", HOST, "-attime", String(at)];
  return openssl("verify", ...rules, "-CAfile", "authority.pem", "leaf.pem").trim();
}

/** An authority that another program made, with names in other types of text than ours. */
function foreignAuthority(): IssuedCertificate {
  const extensions = ["basicConstraints=critical,CA:TRUE,pathlen:0", "keyUsage=critical,keyCertSign"];
  const words = extensions.flatMap((each) => ["-addext", each]);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem"];
  writeFileSync(join(place, "names.cnf"), "[req]\ndistinguished_name=dn\nstring_mask=default\n[dn]\n");
  openssl("req", "-x509", "-config", "names.cnf", ...key, "-subj", "/O=Earlier/CN=Kept authority", ...words, "-out", "cert.pem");
  return { key: readFileSync(join(place, "key.pem"), "utf8"), cert: readFileSync(join(place, "cert.pem"), "utf8") };
}

describe("a certificate for a host", needs("openssl"), () => {
  test("SC-12: passes the strict rules of openssl for its own host alone", () => {
    const authority = makeAuthority();
    expect(verdict(authority, makeLeaf(authority, HOST))).toBe("leaf.pem: OK");
    expect(() => verdict(authority, makeLeaf(authority, "other.example.com"))).toThrow(/hostname mismatch/i);
    expect(() => verdict(makeAuthority(), makeLeaf(authority, HOST))).toThrow(/verification failed/);
  });

  test("names the authority that signs it, and its key, as that one's own certificate writes them", () => {
    const authority = foreignAuthority();
    const leaf = makeLeaf(authority, HOST);
    expect(new X509Certificate(leaf.cert).issuer).toBe("O=Earlier\nCN=Kept authority");
    expect(new X509Certificate(leaf.cert).checkIssued(new X509Certificate(authority.cert))).toBe(true);
    expect(verdict(authority, leaf)).toBe("leaf.pem: OK");
  });

  test("passes after 2049, from when on certificates write years with four digits", () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2049-12-25T00:00:00.500Z") });
    const authority = makeAuthority();
    const leaf = makeLeaf(authority, HOST);
    expect(verdict(authority, leaf, Date.parse("2050-01-10") / 1000)).toBe("leaf.pem: OK");
    expect(openssl("asn1parse", "-in", "leaf.pem")).toMatch(/UTCTIME +:491224000000Z[^]*GENERALIZEDTIME +:20500124000000Z/);
  });

  test("names a host of any length, whose first characters alone are its common name", () => {
    const authority = makeAuthority();
    const host = `${"a".repeat(63)}.${"b".repeat(63)}.example.com`;
    const leaf = new X509Certificate(makeLeaf(authority, host).cert);
    expect(leaf.checkHost(host)).toBe(host);
    expect(leaf.subject).toBe(`CN=${host.slice(0, 64)}`);
  });
});
