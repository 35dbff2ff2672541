/** Encryption of a message to a browser (RFC 8291, in the coding aes128gcm of RFC 8188): the push service between sees bytes alone. */
import { createCipheriv, createECDH, hkdfSync, randomBytes, type ECDH } from "node:crypto";
import { VivError } from "../../../base/schema/errors.ts";
import type { PushKeys } from "../../../base/schema/notification.ts";

const CURVE = "prime256v1";
const SALT_BYTES = 16;
const AUTH_BYTES = 16;
const POINT_BYTES = 65;
const TAG_BYTES = 16;
/** A push service need not take more than 4096 bytes; one record holds all of that. */
const RECORD_BYTES = 4096;
/** After the last record's text. */
const LAST_RECORD = 2;
/** Salt, size of a record, length of the key's point, the point. */
const HEADER_BYTES = SALT_BYTES + 4 + 1 + POINT_BYTES;
export const MOST_PUSH_BYTES = RECORD_BYTES - HEADER_BYTES - TAG_BYTES - 1;

/** What is new for each message; tests give those of the RFC's example. */
export interface MessageSecrets {
  readonly salt: Buffer;
  readonly key: ECDH;
}

function freshSecrets(): MessageSecrets {
  const key = createECDH(CURVE);
  key.generateKeys();
  return { salt: randomBytes(SALT_BYTES), key };
}

/** The keys as bytes. Throws unless a message can be encrypted with them. */
export function parsePushKeys({ p256dh, auth }: PushKeys): { readonly point: Buffer; readonly auth: Buffer } {
  const keys = { point: Buffer.from(p256dh, "base64url"), auth: Buffer.from(auth, "base64url") };
  try {
    if (keys.point.length !== POINT_BYTES || keys.auth.length !== AUTH_BYTES) throw new Error("wrong length");
    freshSecrets().key.computeSecret(keys.point);
    return keys;
  } catch (error) {
    throw new VivError("invalid_input", "The keys are none that a browser makes for push messages.", { cause: error });
  }
}

export function encryptPush(text: Buffer, to: PushKeys, { salt, key }: MessageSecrets = freshSecrets()): Buffer {
  if (text.length > MOST_PUSH_BYTES) throw new VivError("too_large", `A push message holds ${MOST_PUSH_BYTES} bytes at most.`);
  const { point, auth } = parsePushKeys(to);
  const own = key.getPublicKey();
  const shared = expand(key.computeSecret(point), auth, Buffer.concat([Buffer.from("WebPush: info\0"), point, own]), 32);
  const contentKey = expand(shared, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = expand(shared, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
  const cipher = createCipheriv("aes-128-gcm", contentKey, nonce, { authTagLength: TAG_BYTES });
  const sealed = [cipher.update(text), cipher.update(Buffer.from([LAST_RECORD])), cipher.final(), cipher.getAuthTag()];
  const sizes = Buffer.alloc(5);
  sizes.writeUInt32BE(RECORD_BYTES, 0);
  sizes.writeUInt8(own.length, 4);
  return Buffer.concat([salt, sizes, own, ...sealed]);
}

function expand(secret: Buffer, salt: Buffer, info: Buffer, bytes: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, salt, info, bytes));
}
