/** Encryption at rest: AES-256-GCM under a key that lies beside the database and in no backup of it. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
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
    try {
      const found = lstatSync(this.#path);
      if (!found.isFile() || (found.mode & 0o077) !== 0)
        throw new VivError("secret_unreadable", `${this.#path} is not a file that only you can read.`, {
          remedy: "Give it the mode 0600; if others could read it, replace the secrets.",
        });
      const key = Buffer.from(readFileSync(this.#path, "utf8").trim(), "hex");
      if (key.length !== KEY_BYTES) throw new VivError("secret_unreadable", `${this.#path} holds no key.`);
      return key;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Durable before anything is sealed with it, and never over one that is there. */
  #make(): Buffer {
    const key = randomBytes(KEY_BYTES);
    const draft = `${this.#path}.new`;
    rmSync(draft, { force: true });
    const file = openSync(draft, "wx", 0o600);
    try {
      writeSync(file, `${key.toString("hex")}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(draft, this.#path);
    rmSync(draft);
    return key;
  }
}
