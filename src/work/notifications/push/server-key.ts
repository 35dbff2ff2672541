/** The key that this server proves itself with to push services (VAPID, RFC 8292). It is made once, and never leaves the state folder. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { makePrivateFile, readPrivateFile } from "../../../base/host/private-file.ts";
import { VivError } from "../../../base/schema/errors.ts";

/** A push service refuses more than 24 hours. */
const VALID_S = 12 * 3600;

export class ServerKey {
  readonly #path: string;
  #key: KeyObject | undefined;

  /** The key is made at first use. */
  constructor(path: string) {
    this.#path = path;
  }

  /** As a browser's subscribe() takes it: the point, uncompressed. */
  get publicKey(): string {
    const { x = "", y = "" } = createPublicKey(this.#private).export({ format: "jwk" });
    return Buffer.concat([Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]).toString("base64url");
  }

  /** The header that a push service knows this server by. */
  authorization(endpoint: URL, contact: string, now = Date.now()): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { aud: endpoint.origin, exp: Math.floor(now / 1000) + VALID_S, sub: contact };
    const text = `${part({ typ: "JWT", alg: "ES256" })}.${part(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#private, dsaEncoding: "ieee-p1363" });
    return `vapid t=${text}.${signature.toString("base64url")}, k=${this.publicKey}`;
  }

  get #private(): KeyObject {
    this.#key ??= this.#read() ?? this.#make();
    return this.#key;
  }

  #read(): KeyObject | undefined {
    const text = readPrivateFile(this.#path);
    if (text === undefined) return undefined;
    try {
      return createPrivateKey(text);
    } catch (error) {
      throw new VivError("secret_unreadable", `${this.#path} holds no key for push messages.`, {
        cause: error,
        remedy: "Remove the file: a new key is made, and browsers have to be subscribed again.",
      });
    }
  }

  #make(): KeyObject {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    makePrivateFile(this.#path, privateKey.export({ type: "pkcs8", format: "pem" }).toString().trim());
    return privateKey;
  }
}
