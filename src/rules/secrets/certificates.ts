/**
 * X.509 certificates: an authority, and leaves for one host each (RFC 5280). The library writes the structures, Node makes keys and
 * signatures. Loaded at first use: most servers never make a certificate.
 */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate, type KeyObject } from "node:crypto";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from "@peculiar/asn1-x509";

export interface IssuedCertificate {
  readonly key: string;
  readonly cert: string;
}

const DAY_MS = 24 * 3_600_000;
const AUTHORITY = "Vivarium (this machine's sandboxes alone)";
const COMMON_NAME = "2.5.4.3";
/** RFC 5280 allows a common name no more. */
const MOST_NAME_CHARACTERS = 64;
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";

export function makeAuthority(): IssuedCertificate {
  const { publicKey, privateKey } = keyPair();
  const name = nameOf(AUTHORITY);
  const extensions = [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), "critical"),
    // Signs certificates, and nothing else.
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), "critical"),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(publicKey))),
  ];
  const cert = certificate({ subject: name, issuer: name, publicKey, days: 3650, extensions }, privateKey);
  return { key: pemOf(privateKey), cert };
}

/** For one host, by its name alone. */
export function makeLeaf(authority: IssuedCertificate, host: string): IssuedCertificate {
  const { publicKey, privateKey } = keyPair();
  const issuer = issuerOf(authority);
  const extensions = [
    extension(id_ce_subjectAltName, new SubjectAlternativeName([new GeneralName({ dNSName: host })])),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), "critical"),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(publicKey))),
    extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier: issuer.keyIdentifier })),
  ];
  const of = { subject: nameOf(host), issuer: issuer.name, publicKey, days: 30, extensions };
  return { key: pemOf(privateKey), cert: certificate(of, createPrivateKey(authority.key)) };
}

/** For this server itself, by names and addresses. It vouches for itself: people compare its fingerprint. */
export function makeSelfSigned(names: readonly string[]): IssuedCertificate {
  const { publicKey, privateKey } = keyPair();
  const name = nameOf("Vivarium (this machine's dashboard)");
  const alternatives = names.map((one) => new GeneralName(isAddress(one) ? { iPAddress: one } : { dNSName: one }));
  const extensions = [
    extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), "critical"),
    extension(id_ce_subjectAltName, new SubjectAlternativeName(alternatives)),
    extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
    extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), "critical"),
    extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(publicKey))),
  ];
  // Some systems refuse certificates of servers that are good for longer.
  return { key: pemOf(privateKey), cert: certificate({ subject: name, issuer: name, publicKey, days: 397, extensions }, privateKey) };
}

function isAddress(name: string): boolean {
  return name.includes(":") || /^\d+(?:\.\d+){3}$/.test(name);
}

/** As the authority's own certificate writes them: verifiers compare the bytes. */
function issuerOf({ cert }: IssuedCertificate): { name: Name; keyIdentifier: KeyIdentifier } {
  const { raw, publicKey } = new X509Certificate(cert);
  const { subject, extensions } = AsnConvert.parse(raw, Certificate).tbsCertificate;
  const own = extensions?.find(({ extnID }) => extnID === id_ce_subjectKeyIdentifier);
  const keyIdentifier = own === undefined ? new KeyIdentifier(keyId(publicKey)) : AsnConvert.parse(own.extnValue, KeyIdentifier);
  return { name: subject, keyIdentifier };
}

function certificate(
  of: { subject: Name; issuer: Name; publicKey: KeyObject; days: number; extensions: Extension[] },
  signer: KeyObject,
): string {
  const now = Date.now();
  const signatureAlgorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature: signatureAlgorithm,
    issuer: of.issuer,
    validity: new Validity({ notBefore: new Date(now - DAY_MS), notAfter: new Date(now + of.days * DAY_MS) }),
    subject: of.subject,
    subjectPublicKeyInfo: AsnConvert.parse(spki(of.publicKey), SubjectPublicKeyInfo),
    extensions: new Extensions(of.extensions),
  });
  const signed = sign("sha256", Buffer.from(AsnConvert.serialize(tbsCertificate)), signer);
  const whole = new Certificate({ tbsCertificate, signatureAlgorithm, signatureValue: bytesOf(signed) });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(whole))).toString();
}

function extension(extnID: string, value: unknown, critical?: "critical"): Extension {
  const extnValue = new OctetString(AsnConvert.serialize(value));
  return new Extension({ extnID, critical: critical !== undefined, extnValue });
}

function nameOf(text: string): Name {
  const value = new AttributeValue({ utf8String: text.slice(0, MOST_NAME_CHARACTERS) });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

/** Positive, and without a leading zero. */
function serialNumber(): ArrayBuffer {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return bytesOf(serial);
}

function keyPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

function pemOf(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Strict verifiers want both ends of the chain to name its key. */
function keyId(key: KeyObject): ArrayBuffer {
  return bytesOf(createHash("sha256").update(spki(key)).digest().subarray(0, 20));
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: "spki", format: "der" });
}

/** In memory of their own: small buffers of Node share theirs. */
function bytesOf(buffer: Buffer): ArrayBuffer {
  return new Uint8Array(buffer).buffer;
}
