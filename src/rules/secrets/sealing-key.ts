/** Encryption at rest: AES-256-GCM under a key that lies beside the database and in no backup of it. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { makePrivateFile, readPrivateFile } from "../../base/host/private-file.ts";
import { VivError } from "../../base/schema/errors.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class SealingKey {
  readonly #path: string;
  #key: Buffer | undefined;

  /** The key is made at first use. */
  constructor(path: string) {
    this.#path = path;
  }

  /** What is sealed opens only with the same context, so that a sealed value can't be moved to another row. */
  seal(text: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#readKey(true), nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(context));
    return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64");
  }

  open(sealed: string, context: string): string {
    const bytes = Buffer.from(sealed, "base64");
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#readKey(false), bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_BYTES));
      return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    } catch (error) {
      if (error instanceof VivError) throw error;
      throw new VivError("secret_unreadable", "A secret does not open with the key of this state folder.", { cause: error });
    }
  }

  #readKey(make: boolean): Buffer {
    this.#key ??= this.#find() ?? (make ? this.#make() : undefined);
    if (this.#key === undefined) throw new VivError("secret_unreadable", `The key of the secrets, ${this.#path}, is gone.`);
    return this.#key;
  }

  #find(): Buffer | undefined {
    const text = readPrivateFile(this.#path);
    if (text === undefined) return undefined;
    const key = Buffer.from(text, "hex");
    if (key.length !== KEY_BYTES) throw new VivError("secret_unreadable", `${this.#path} holds no key.`);
    return key;
  }

  /** Durable before anything is sealed with it. */
  #make(): Buffer {
    const key = randomBytes(KEY_BYTES);
    makePrivateFile(this.#path, key.toString("hex"));
    return key;
  }
}
