/** X.509 certificates, just enough of them: an authority, and leaves for one host each (RFC 5280; DER by hand). */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

export interface Certified {
  readonly key: string;
  readonly cert: string;
}

const DAY_MS = 24 * 3_600_000;
const ECDSA_SHA256 = oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02);

function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 128) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 255 ? 4 : 2, "0"), "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const octets = (...parts: Buffer[]): Buffer => der(0x04, ...parts);
const bits = (body: Buffer, unused = 0): Buffer => der(0x03, Buffer.from([unused]), body);
const TRUE = der(0x01, Buffer.from([0xff]));

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(text.slice(0, 64))))));
}

/** Two digits of the year up to 2049, four from then on: strict verifiers take no other form. */
function time(at: number): Buffer {
  const text = `${new Date(at).toISOString().slice(0, 19).replaceAll(/[-T:]/g, "")}Z`;
  return text < "2050" ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text));
}

function extension(id: number, critical: boolean, body: Buffer): Buffer {
  return sequence(oid(0x55, 0x1d, id), ...(critical ? [TRUE] : []), octets(body));
}

function certificate(
  of: { subject: string; issuer: string; publicKey: KeyObject; days: number; extensions: Buffer[] },
  signer: KeyObject,
): string {
  const serial = randomBytes(16);
  // Positive, and without a leading zero.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const now = Date.now();
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    sequence(ECDSA_SHA256),
    nameOf(of.issuer),
    sequence(time(now - DAY_MS), time(now + of.days * DAY_MS)),
    nameOf(of.subject),
    of.publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...of.extensions)),
  );
  const whole = sequence(content, sequence(ECDSA_SHA256), bits(sign("sha256", content, signer)));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function keyPair(): { publicKey: KeyObject; privateKey: KeyObject; pem: string } {
  const pair = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  return { ...pair, pem: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** Strict verifiers want both ends of the chain to name its key. */
function keyName(key: KeyObject): Buffer {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
}

const AUTHORITY = "Vivarium (this machine's sandboxes alone)";

export function makeAuthority(): Certified {
  const { publicKey, privateKey, pem } = keyPair();
  const extensions = [
    extension(0x13, true, sequence(TRUE, der(0x02, Buffer.from([0])))),
    // Signs certificates, and nothing else.
    extension(0x0f, true, bits(Buffer.from([0x04]), 2)),
    extension(0x0e, false, octets(keyName(publicKey))),
  ];
  return { key: pem, cert: certificate({ subject: AUTHORITY, issuer: AUTHORITY, publicKey, days: 3650, extensions }, privateKey) };
}

/** For one host, by its name alone. */
export function makeLeaf(authority: Certified, host: string): Certified {
  const { publicKey, pem } = keyPair();
  const extensions = [
    extension(0x11, false, sequence(der(0x82, Buffer.from(host, "latin1")))),
    extension(0x25, false, sequence(oid(0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01))),
    extension(0x0f, true, bits(Buffer.from([0x80]), 7)),
    extension(0x0e, false, octets(keyName(publicKey))),
    extension(0x23, false, sequence(der(0x80, keyName(createPublicKey(authority.key))))),
  ];
  const of = { subject: host, issuer: AUTHORITY, publicKey, days: 30, extensions };
  return { key: pem, cert: certificate(of, createPrivateKey(authority.key)) };
}
