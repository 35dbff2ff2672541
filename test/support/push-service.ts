/** A browser and its push service, as far as the server sees them: keys, an endpoint on loopback, and messages decrypted as browsers do. */
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify, type ECDH } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { PushKeys } from "../../src/base/schema/notification.ts";

/** What a browser keeps for itself, and what it gives the page. */
export class PushReceiver {
  readonly #key: ECDH = createECDH("prime256v1");
  readonly #auth: Buffer;

  constructor(secrets?: { readonly privateKey: string; readonly auth: string }) {
    if (secrets === undefined) this.#key.generateKeys();
    else this.#key.setPrivateKey(Buffer.from(secrets.privateKey, "base64url"));
    this.#auth = secrets === undefined ? randomBytes(16) : Buffer.from(secrets.auth, "base64url");
  }

  get keys(): PushKeys {
    return { p256dh: this.#key.getPublicKey().toString("base64url"), auth: this.#auth.toString("base64url") };
  }

  /** RFC 8291 from the browser's side: written apart from the code under test, from the RFC's own steps. */
  decrypt(body: Buffer): string {
    const salt = body.subarray(0, 16);
    const length = body.readUInt8(20);
    const sender = body.subarray(21, 21 + length);
    const sealed = body.subarray(21 + length);
    const derive = (secret: Buffer, by: Buffer, info: Buffer, bytes: number): Buffer =>
      Buffer.from(hkdfSync("sha256", secret, by, info, bytes));
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), this.#key.getPublicKey(), sender]);
    const shared = derive(this.#key.computeSecret(sender), this.#auth, info, 32);
    const key = derive(shared, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
    const nonce = derive(shared, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
    const decipher = createDecipheriv("aes-128-gcm", key, nonce).setAuthTag(sealed.subarray(-16));
    const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
    const end = padded.lastIndexOf(2);
    if (end < 0 || padded.subarray(end + 1).some((byte) => byte !== 0)) throw new Error("the padding is not that of a last record");
    return padded.subarray(0, end).toString("utf8");
  }
}

/** The claims of a VAPID header, if its signature is by the key it names. */
export function claimsOf(authorization: string): { readonly key: string; readonly claims: Readonly<Record<string, unknown>> } {
  const [, token = "", key = ""] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? [];
  const [head = "", claims = "", signature = ""] = token.split(".");
  const point = Buffer.from(key, "base64url");
  const jwk = { kty: "EC", crv: "P-256", x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const signed = Buffer.from(`${head}.${claims}`);
  if (!verify("sha256", signed, { key: publicKey, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url")))
    throw new Error("the signature is not by the key that the header names");
  return { key, claims: JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown> };
}

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Takes requests on loopback, and answers as the test says. */
export class RequestCatcher {
  readonly received: ReceivedRequest[] = [];
  /** Of the next answers; 201 once these are used up. */
  readonly answers: { readonly status: number; readonly headers?: Record<string, string> }[] = [];
  readonly #server: Server;
  #heard: (() => void)[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port = 0): Promise<RequestCatcher> {
    const server = createServer();
    const catcher = new RequestCatcher(server);
    server.on("request", (request, response) => {
      void buffer(request).then((body) => {
        catcher.received.push({ path: request.url ?? "", headers: request.headers, body });
        const { status, headers = {} } = catcher.answers.shift() ?? { status: 201 };
        response.writeHead(status, headers).end();
        for (const heard of catcher.#heard.splice(0)) heard();
      });
    });
    await new Promise<void>((resolve) => void server.listen(port, "127.0.0.1", resolve));
    return catcher;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves once so many requests came. */
  async count(least: number): Promise<readonly ReceivedRequest[]> {
    while (this.received.length < least) await new Promise<void>((resolve) => this.#heard.push(resolve));
    return this.received;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }
}
